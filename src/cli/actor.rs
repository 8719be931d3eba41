//! Who asked for a change, in words.

use super::print;
use serde_json::Value;

/// The actor of an answer as a person reads it; none where there is none.
pub(super) fn in_words(actor: &Value) -> Option<String> {
    let surface = actor["surface"].as_str()?;
    let over = match surface {
        "in_process" => "holon run".to_owned(),
        "socket" => "the socket".to_owned(),
        other => other.to_owned(),
    };
    let who = match (actor["token"].as_str(), actor["agent_id"].as_str()) {
        (_, Some(agent)) => format!("a command of agent {agent}, over {over}"),
        (Some(token), None) => format!("token {token}, over {over}"),
        (None, None) if surface == "http" => "http without a token".to_owned(),
        (None, None) => over,
    };
    Some(peer(&actor["peer"]).map_or(who.clone(), |peer| format!("{who} ({peer})")))
}

/// A change with its actor: who, when, and the event that says so.
pub(super) fn of_change(change: &Value) -> Option<String> {
    let who = in_words(&change["actor"])?;
    Some(format!("{who}, at {} (event {})", print::text(&change["at"]), print::text(&change["event_seq"])))
}

fn peer(peer: &Value) -> Option<String> {
    if let Some(address) = peer["address"].as_str() {
        return Some(address.to_owned());
    }
    let local = peer.get("local")?;
    let program = local["program"].as_str().map(|program| format!(", {program}")).unwrap_or_default();
    Some(format!("uid {}, pid {}{program}", print::text(&local["uid"]), print::text(&local["pid"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_actor_is_told_by_token_surface_and_peer() {
        let cases = [
            (json!({"token": "ci", "surface": "http"}), "token ci, over http"),
            (json!({"token": null, "surface": "http"}), "http without a token"),
            (json!({"token": null, "surface": "socket"}), "the socket"),
            (json!({"token": null, "surface": "in_process"}), "holon run"),
            (
                json!({"surface": "socket", "agent_id": "main", "peer": {"agent_process": "main"}}),
                "a command of agent main, over the socket",
            ),
            (
                json!({"surface": "socket", "peer": {"local": {"uid": 0, "pid": 7, "program": "curl"}}}),
                "the socket (uid 0, pid 7, curl)",
            ),
            (
                json!({"token": "ci", "surface": "http", "peer": {"address": "[::1]:9"}}),
                "token ci, over http ([::1]:9)",
            ),
        ];
        for (actor, words) in cases {
            assert_eq!(in_words(&actor).as_deref(), Some(words));
        }
        assert_eq!(in_words(&Value::Null), None);
    }
}
