//! The verbs about this machine and its configuration, which need no server: `config`.

use crate::cli::say;
use crate::daemon::Home;
use serde_json::{Value, json};

/// What `holon config show` has of a setting: its value, and where that comes from.
fn setting(home: &Home, arguments: &[&str], name: &str) -> (Value, String) {
    let shown = say(home, &[&["config", "show", "--json"], arguments].concat()).json();
    let settings = shown.as_array().expect("a list");
    let found = settings.iter().find(|setting| setting["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not among {shown}"));
    (found["value"].clone(), found["from"].as_str().expect("a text").to_owned())
}

#[test]
fn a_setting_comes_by_flag_else_environment_else_file_else_default() {
    let home = Home::new();
    let of = |home: &Home, flags: &[&str]| setting(home, flags, "model");
    assert_eq!(of(&home, &[]), (json!("builtin/runbook"), "default".into()));
    let home = home.configured("model = \"local/file\"\nfallbacks = [\"builtin/runbook\"]\n");
    assert_eq!(of(&home, &[]), (json!("local/file"), "config.toml".into()));
    let home = home.environment("HOLON_MODEL", "local/environment");
    assert_eq!(of(&home, &[]), (json!("local/environment"), "HOLON_MODEL".into()));
    assert_eq!(of(&home, &["--model", "local/flag"]), (json!("local/flag"), "flag".into()));
    assert_eq!(setting(&home, &[], "fallbacks"), (json!("builtin/runbook"), "config.toml".into()));
    assert_eq!(setting(&home, &[], "home").1, "HOLON_HOME");
    assert_eq!(setting(&home, &["--listen", "[::1]:1"], "listen"), (json!("[::1]:1"), "flag".into()));
    let table = say(&home, &["config", "show"]);
    assert!(table.data().starts_with("SETTING "), "{table:?}");
    assert!(table.data().lines().any(|line| line.starts_with("listen ") && line.ends_with(" default")), "{table:?}");
}

#[test]
fn secrets_are_told_of_and_not_told() {
    let home = Home::new()
        .configured("control_token = \"geheim-1\"\n[providers.local]\napi_key = \"geheim-2\"\n")
        .environment("ANTHROPIC_API_KEY", "geheim-3");
    let set = |from: &str| (json!("set"), from.to_owned());
    assert_eq!(setting(&home, &[], "control_token"), set("config.toml"));
    assert_eq!(setting(&home, &[], "providers.local.api_key"), set("config.toml"));
    assert_eq!(setting(&home, &[], "providers.anthropic.api_key"), set("ANTHROPIC_API_KEY"));
    assert_eq!(setting(&home, &["--token", "geheim-4"], "control_token"), set("flag"));
    for arguments in [&["config", "show"][..], &["config", "show", "--json"]] {
        let said = say(&home, arguments);
        assert!(!said.out.contains("geheim") && !said.err.contains("geheim"), "{said:?}");
    }
}

#[test]
fn the_place_of_the_configuration_is_known_even_when_it_cannot_be_read() {
    let home = Home::new();
    let place = home.path().join("config.toml");
    assert_eq!(say(&home, &["config", "path"]).data(), format!("{}\n", place.display()));
    assert_eq!(say(&home, &["config", "path", "--json"]).json(), json!({"path": place, "exists": false}));
    let home = home.configured("modle = 1");
    assert_eq!(say(&home, &["config", "path", "--json"]).json()["exists"], true);
    say(&home, &["config", "show"]).refused(2, &["modle", "mend the file"]);
}
