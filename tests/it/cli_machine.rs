//! The verbs about this machine and its configuration, which need no server: `config`, `doctor`.

use crate::cli::say;
use crate::daemon::Home;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

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
    assert_eq!(setting(&home, &[], "log_format"), (json!("text"), "default".into()));
    assert_eq!(setting(&home, &["--log-format", "json"], "log_format"), (json!("json"), "flag".into()));
    let table = say(&home, &["config", "show"]);
    assert!(table.data().starts_with("SETTING "), "{table:?}");
    assert!(table.data().lines().any(|line| line.starts_with("listen ") && line.ends_with(" default")), "{table:?}");
}

#[test]
fn secrets_are_told_of_and_not_told() {
    let home = Home::new()
        .configured("control_token = \"geheim-1-geheim-1\"\n[providers.local]\napi_key = \"geheim-2\"\n")
        .environment("ANTHROPIC_API_KEY", "geheim-3");
    let set = |from: &str| (json!("set"), from.to_owned());
    assert_eq!(setting(&home, &[], "control_token"), set("config.toml"));
    assert_eq!(setting(&home, &[], "providers.local.api_key"), set("config.toml"));
    assert_eq!(setting(&home, &[], "providers.anthropic.api_key"), set("ANTHROPIC_API_KEY"));
    let file = home.path().join("token");
    fs::write(&file, "geheim-4-geheim-4").unwrap();
    assert_eq!(setting(&home, &["--token-file", file.to_str().unwrap()], "control_token"), set("flag"));
    for arguments in [&["config", "show"][..], &["config", "show", "--json"], &["doctor"], &["doctor", "--json"]] {
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

/// What `holon doctor` found of one thing.
fn check(home: &Home, name: &str) -> (String, String) {
    let said = say(home, &["doctor", "--json", "--listen", "127.0.0.1:0"]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let checks = told["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not among {told}"));
    assert_eq!(said.code == Some(0), told["ok"] == true, "{said:?}");
    (print(&found["result"]), print(&found["detail"]))
}

fn print(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn a_machine_that_is_fit_is_called_so_and_left_as_it_is() {
    let home = Home::new();
    let said = say(&home, &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let names: Vec<&str> = said.out.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    let looked_at =
        ["linux", "clock", "shell", "git", "limits", "home", "disk", "lock", "ledger", "models", "port", "webhooks"];
    assert_eq!(names, looked_at);
    assert!(check(&home, "home").1.ends_with("is not there yet"));
    assert!(!home.path().exists(), "it only looks");
}

#[test]
fn what_is_not_fit_is_named_with_what_to_do() {
    let home = Home::new().configured("model = \"nobody/x\"");
    let said = say(&home, &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("error: not fit: models\nhint: holon help providers"), "{said:?}");
    assert_eq!(check(&home, "models").0, "failed");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let said = say(&Home::new(), &["doctor", "--listen", &address]);
    assert!(said.code == Some(1) && said.err.contains("choose another address with --listen"), "{said:?}");

    let home = Home::new();
    fs::write(home.path(), "no folder").expect("a file");
    assert_eq!(check(&home, "home").0, "failed");
}

#[test]
fn a_home_that_others_may_enter_is_a_warning() {
    let home = Home::new().configured("");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let said = say(&home, &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("home: close it: chmod 700"), "{said:?}");
    assert_eq!(check(&home, "home").0, "warning");
}

#[test]
fn a_server_that_runs_was_killed_or_hangs_is_told_apart() {
    let home = Home::new();
    let daemon = home.serve();
    assert_eq!(check(&home, "lock"), ("ok".into(), "a server runs on this home".into()));
    assert_eq!(check(&home, "ledger").1, "the server has it open");
    daemon.kill();
    assert_eq!(check(&home, "lock"), ("ok".into(), "free".into()));
    let (result, detail) = check(&home, "ledger");
    assert!(result == "ok" && detail.starts_with("the last server was killed"), "{detail}");
    say(&home, &["ledger", "verify"]).refused(1, &["not closed in good order", "holon serve"]);

    let lock = fs::File::options().write(true).open(home.path().join("lock")).expect("a lock");
    lock.lock().expect("it is free");
    assert_eq!(check(&home, "lock").0, "failed");
    drop(lock);
    assert!(home.serve().stop().success());
    assert_eq!(check(&home, "ledger"), ("ok".into(), "opens".into()));
}

#[test]
fn a_ledger_that_does_not_open_is_not_fit() {
    let home = Home::new();
    home.serve().stop();
    fs::write(home.path().join("ledger.redb"), "no ledger").expect("ours");
    assert_eq!(check(&home, "ledger").0, "failed");
}

#[test]
fn a_unit_leaves_commands_alone_when_the_service_is_restarted() {
    let home = Home::new();
    let said = say(&home, &["doctor", "--emit", "systemd"]);
    let unit = said.data();
    for line in [
        "KillMode=process".to_owned(),
        format!("ExecStart=\"{}\" serve", env!("CARGO_BIN_EXE_holon")),
        format!("Environment=\"HOLON_HOME={}\"", home.path().display()),
    ] {
        assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
    }
    assert_eq!(say(&home, &["doctor", "--emit", "systemd", "--json"]).json()["unit"], unit);
}
