//! The two forms in which the vocabulary is written down, so that its schema can be read back.

/// One kind of event, as `ledger-schema/` lists it.
#[derive(Clone, Copy, Debug)]
pub struct KindRow {
    pub tag: u16,
    pub kind: &'static str,
    pub version: u8,
    /// The release that brought this version.
    pub since: &'static str,
    pub meaning: &'static str,
    pub fields: &'static [FieldRow],
}

/// One field of an event or of a shape.
#[derive(Clone, Copy, Debug)]
pub struct FieldRow {
    pub name: &'static str,
    pub shape: &'static str,
}

impl FieldRow {
    /// The shape as it is written down, however the source breaks its lines.
    pub fn shape_text(&self) -> String {
        self.shape.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A type that events are made of.
#[derive(Clone, Copy, Debug)]
pub struct ShapeRow {
    pub name: &'static str,
    /// `struct`: the parts follow each other. `enum`: one of the parts, numbered from 0 in this order.
    pub form: &'static str,
    pub parts: &'static [FieldRow],
}

/// Defines the events of one plane: a body for each, and the enum over them.
///
/// `TAG kind VERSION since "RELEASE" => Variant(Body) { fields }`
macro_rules! plane {
    (
        $(#[doc = $doc:literal])*
        $plane:ident {
            $(
                $(#[doc = $meaning:literal])*
                $tag:literal $kind:ident $version:literal since $since:literal => $variant:ident($body:ident) {
                    $($(#[doc = $note:literal])* $field:ident: $shape:ty,)*
                }
            )*
        }
    ) => {
        $(
            $(#[doc = $meaning])*
            #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
            pub struct $body {
                $($(#[doc = $note])* pub $field: $shape,)*
            }

            impl From<$body> for $crate::events::Event {
                fn from(body: $body) -> Self {
                    $plane::$variant(body).into()
                }
            }
        )*

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant, reason = "few events are held at once, and one box each costs more")]
        pub enum $plane {
            $($(#[doc = $meaning])* $variant($body),)*
        }

        impl $plane {
            pub const KINDS: &'static [$crate::events::vocabulary::KindRow] = &[$(
                $crate::events::vocabulary::KindRow {
                    tag: $tag,
                    kind: stringify!($kind),
                    version: $version,
                    since: $since,
                    meaning: concat!($($meaning),*),
                    fields: &[$($crate::events::vocabulary::FieldRow {
                        name: stringify!($field),
                        shape: stringify!($shape),
                    },)*],
                },
            )*];

            pub fn tag(&self) -> u16 {
                match self { $(Self::$variant(_) => $tag,)* }
            }

            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($kind),)* }
            }

            pub(super) fn encode_body(&self, bytes: &mut Vec<u8>) -> Result<(), $crate::events::codec::CodecError> {
                match self { $(Self::$variant(body) => $crate::events::codec::append(bytes, body),)* }
            }

            /// None for a tag of another plane.
            pub(super) fn decode_body(
                tag: u16,
                body: &[u8],
            ) -> Option<Result<Self, $crate::events::codec::CodecError>> {
                match tag {
                    $($tag => Some($crate::events::codec::read_whole(body).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

/// Defines a type that events are made of. Variants and fields may be appended to an enum, never moved.
macro_rules! shape {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derived:ident),+)])?
        pub enum $name:ident {
            $(
                $(#[doc = $note:literal])*
                $variant:ident $( ( $($inner:ty),+ ) )? $( { $( $(#[doc = $fnote:literal])* $field:ident : $shape:ty, )+ } )?,
            )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize $($(, $derived)+)?)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[doc = $note])* $variant $( ( $($inner),+ ) )? $( { $( $(#[doc = $fnote])* $field: $shape, )+ } )?,)+
        }

        impl $name {
            pub(in $crate::events) const SHAPE: $crate::events::vocabulary::ShapeRow =
                $crate::events::vocabulary::ShapeRow {
                    name: stringify!($name),
                    form: "enum",
                    parts: &[$($crate::events::vocabulary::FieldRow {
                        name: stringify!($variant),
                        shape: stringify!($( ( $($inner),+ ) )? $( { $( $field: $shape, )+ } )?),
                    },)+],
                };
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $($(#[doc = $note:literal])* $field:ident: $shape:ty,)+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[doc = $note])* pub $field: $shape,)+
        }

        impl $name {
            pub(in $crate::events) const SHAPE: $crate::events::vocabulary::ShapeRow =
                $crate::events::vocabulary::ShapeRow {
                    name: stringify!($name),
                    form: "struct",
                    parts: &[$($crate::events::vocabulary::FieldRow {
                        name: stringify!($field),
                        shape: stringify!($shape),
                    },)+],
                };
        }
    };
}

/// Names for the wire of an enum without fields: snake case both ways.
macro_rules! names {
    ($name:ident { $($variant:ident = $text:literal,)+ }) => {
        impl Copy for $name {}

        impl $crate::words::prompt_text::Own for $name {}

        impl $name {
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
