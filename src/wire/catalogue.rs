//! The catalogue of events, as `GET /schema/events` serves it.

use crate::events::PLANES;
use crate::events::schema::SHAPES;
use serde_json::{Value, json};

/// Every kind of event with its fields, and the types that those are made of.
pub fn events() -> Value {
    let kinds = PLANES.iter().flat_map(|(plane, kinds)| kinds.iter().map(move |kind| (plane, kind)));
    let kinds = kinds.map(|(plane, kind)| {
        let fields = kind.fields.iter().map(|field| json!({"name": field.name, "shape": field.shape_text()}));
        json!({
            "type": kind.kind,
            "plane": plane,
            "tag": kind.tag,
            "schema_version": kind.version,
            "since": kind.since,
            "meaning": kind.meaning.trim(),
            "fields": fields.collect::<Vec<_>>(),
        })
    });
    let shapes = SHAPES.iter().map(|shape| {
        let parts = shape.parts.iter().map(|part| json!({"name": part.name, "shape": part.shape_text()}));
        json!({"name": shape.name, "form": shape.form, "parts": parts.collect::<Vec<_>>()})
    });
    json!({"events": kinds.collect::<Vec<_>>(), "shapes": shapes.collect::<Vec<_>>()})
}
