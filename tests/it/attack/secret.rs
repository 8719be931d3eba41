//! Commands and file tools of an agent look for the daemon's secrets.

use crate::cli::say;
use crate::daemon::{Daemon, Home};
use crate::other_user::home_of_each_user;
use serde_json::json;
use std::fs;

/// Writes all that `/proc` tells of any process to `seen`, and what can be opened of the daemon `$1` and of the
/// command's supervisor to `open`.
const LOOK: &str = r#"
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > seen 2> /dev/null
ps axwwe >> seen 2> /dev/null
supervisor=$$
until grep -qa supervise /proc/$supervisor/cmdline; do
    supervisor=$(grep PPid: /proc/$supervisor/status | tr -dc 0-9)
done
for process in $1 $supervisor; do
    for file in environ mem maps auxv; do
        (: < /proc/$process/$file) 2> /dev/null && echo $file >> open
    done
    ls -l /proc/$process/fd >> descriptors 2> /dev/null
done
echo looked at $1 and $supervisor
"#;

/// A text that is nowhere else on the machine, and 16 bytes or more.
fn secret(home: &Home, name: &str) -> String {
    format!("{}-is-nobodys-business", home.marker(name))
}

/// A home whose daemon has its secrets by each way that a command could come by them again.
fn with_secrets(home: Home) -> (Home, Vec<String>) {
    let secrets: Vec<String> = ["token", "variable", "key", "any"].map(|name| secret(&home, name)).into();
    let home = home
        .argument(&format!("--token={}", secrets[0]))
        .environment("HOLON_CONTROL_TOKEN", &secrets[1])
        .environment("OPENAI_API_KEY", &secrets[2])
        .environment("SOME_VARIABLE", &secrets[3]);
    (home, secrets)
}

async fn answer(daemon: &Daemon, text: &str) -> String {
    let message = daemon.prompt("main", text).await;
    daemon.answer("main", &message).await["text"].to_string()
}

#[tokio::test]
async fn a_command_finds_no_secret_in_any_process() {
    for home in home_of_each_user() {
        let (home, secrets) = with_secrets(home);
        fs::write(home.workspace().join("look.sh"), LOOK).unwrap();
        let daemon = home.serve();
        let said = answer(&daemon, &format!("$ sh look.sh {}", daemon.id())).await;
        assert!(said.contains(&format!("looked at {} and ", daemon.id())), "{said}");
        let seen = String::from_utf8_lossy(&fs::read(home.workspace().join("seen")).unwrap()).into_owned();
        assert!(seen.contains("serve") && seen.contains("PATH="), "it saw the daemon's command line and environments");
        for secret in &secrets {
            assert!(!seen.contains(secret), "{secret} was seen");
        }
        assert!(!home.written("descriptors").contains("memfd"), "{}", home.written("descriptors"));
        if !home.is_of_root() {
            assert_eq!(home.written("open"), "", "files of the daemon or the supervisor could be opened");
        }
    }
}

#[tokio::test]
async fn a_file_tool_finds_no_secret_in_the_daemon() {
    for home in home_of_each_user() {
        let (home, secrets) = with_secrets(home);
        let read = |path: &str| json!({"tool": "ReadFile", "arguments": {"path": path}});
        let reads = ["/proc/self/environ", "/proc/thread-self/environ", "/proc/self/cmdline", "/proc/self/task"];
        let calls: Vec<_> = reads.map(read).into();
        let attach = json!([{"tool": "AttachWorkspace", "arguments": {"path": "/"}}]);
        let script = json!({"rounds": [{"calls": attach}, {"calls": calls}], "default": {"text": "read"}});
        let home = home.scripted(&script);
        let daemon = home.serve();
        assert!(answer(&daemon, "read up").await.contains("read"));
        let events = serde_json::to_string(&daemon.events("main").await).unwrap();
        assert!(events.contains("AttachWorkspace") && events.contains("/proc/self/environ"), "{events}");
        for secret in &secrets {
            assert!(!events.contains(secret), "{secret} is in the ledger: {events}");
        }
    }
}

/// A home for each way to name a control token, with the arguments that belong to it.
fn named(token: &str) -> Vec<(Home, Vec<String>)> {
    let by_file = Home::new();
    let file = by_file.workspace().join("token").to_str().unwrap().to_owned();
    fs::write(&file, token).unwrap();
    vec![
        (Home::new().configured(&format!("control_token = {}", json!(token))), Vec::new()),
        (Home::new().environment("HOLON_CONTROL_TOKEN", token), Vec::new()),
        (Home::new().environment("HOLON_TOKEN_FILE", &file), Vec::new()),
        (Home::new(), vec![format!("--token={token}")]),
        (by_file, vec!["--token-file".to_owned(), file.clone()]),
    ]
}

#[test]
fn a_token_that_is_named_and_is_none_opens_nothing() {
    for token in ["", " \n", "x", "fifteen-letters", "sixteen-letters-\nin-two-lines"] {
        for (home, arguments) in named(token) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            for verb in [&["status"][..], &["run", "$ id"], &["serve", "--listen", "127.0.0.1:0"]] {
                let said = say(&home, &[verb, &arguments].concat());
                assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{token:?} {verb:?}: {said:?}");
                assert!(said.err.contains("error: the control token from "), "{said:?}");
                assert!(said.err.contains("hint: make one with: head -c 32 /dev/urandom | base64"), "{said:?}");
                assert!(token.trim().len() < 2 || !said.err.contains(token), "{said:?}");
            }
        }
    }
    for (home, arguments) in named(" sixteen-letters-\n") {
        let home = arguments.iter().fold(home, |home, argument| home.argument(argument));
        assert!(home.serve().stop().success());
    }
}

#[test]
fn a_token_on_the_command_line_is_warned_of() {
    let home = Home::new();
    let token = secret(&home, "token");
    for verb in [&["config", "show"][..], &["run", "say: hello"]] {
        let said = say(&home, &[verb, &["--token", &token]].concat());
        assert!(said.code == Some(0) && said.err.matches("warning: --token shows the token").count() == 1, "{said:?}");
        assert!(said.err.contains("hint: use --token-file FILE") && !said.err.contains(&token), "{said:?}");
    }
    assert!(say(&home, &["help", "serve"]).data().contains("--token-file"), "the help says so as well");
}

#[test]
fn no_fault_in_the_configuration_is_told_with_a_secret() {
    let broken = [
        "control_token = \"geheim-geheim-geheim\nlisten = \"127.0.0.1:1\"",
        "control_token = geheim-geheim-geheim",
        "control_token \"geheim-geheim-geheim\"",
        "control_token = [\"geheim-geheim-geheim\"]",
        "fallbacks = \"geheim\"",
        "providers = \"geheim\"",
        "[providers]\nopenai = \"geheim\"",
        "[providers.openai]\nprotocol = \"geheim\"",
        "[providers.openai]\napi_key = { geheim = \"geheim\"",
        "[providers.openai]\napikey = \"geheim\"",
    ];
    for text in broken {
        let home = Home::new().configured(text);
        for verb in [&["config", "show"][..], &["doctor"], &["status"], &["serve", "--listen", "127.0.0.1:0"]] {
            let said = say(&home, verb);
            said.refused(2, &["config.toml: line ", ", column ", "mend the file"]);
            assert!(!said.err.contains("geheim"), "{text}: {said:?}");
        }
    }
}

#[tokio::test]
async fn a_password_in_a_url_is_shown_nowhere() {
    let home = Home::new()
        .environment("HOLON_MODEL", "openai/model")
        .environment("OPENAI_API_KEY", "key")
        .environment("OPENAI_BASE_URL", "http://someone:geheim@127.0.0.1:1/v1")
        .environment("OLLAMA_HOST", "http://127.0.0.1:2/?key=geheim")
        .environment("HOLON_LOG", "trace")
        .environment("HOLON_SERVER", "http://someone:geheim@127.0.0.1:1");
    let shown = say(&home, &["config", "show"]);
    assert!(
        shown.data().contains(" http://127.0.0.1:1/v1 ") && shown.out.contains(" http://127.0.0.1:2/ "),
        "{shown:?}"
    );
    let unreachable = say(&home, &["status"]);
    unreachable.refused(3, &["cannot reach holon at http://127.0.0.1:1/"]);
    let unreadable = say(&home, &["--server", "http//someone:geheim@127.0.0.1:1", "status"]);
    unreadable.refused(2, &["--server is not a URL"]);
    for said in [&shown, &unreachable, &unreadable, &say(&home, &["--help"])] {
        assert!(!said.out.contains("geheim") && !said.err.contains("geheim"), "{said:?}");
    }
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    assert!(daemon.answer("main", &message).await["text"].to_string().contains("127.0.0.1"));
    let events = serde_json::to_string(&daemon.events("main").await).unwrap();
    assert!(!events.contains("geheim") && !home.log().contains("geheim"), "{events}");
    for url in ["http://127.0.0.1:1/v1?key=geheim", "someone:geheim@127.0.0.1:1", "http://someone:geheim@[v1"] {
        let home = Home::new().environment("HOLON_MODEL", "openai/model").environment("OPENAI_BASE_URL", url);
        let home = home.environment("HOLON_LOG", "trace");
        for verb in [&["doctor"][..], &["config", "show"], &["run", "hello"]] {
            let said = say(&home, verb);
            assert!(!said.out.contains("geheim") && !said.err.contains("geheim"), "{verb:?} {url}: {said:?}");
        }
        assert!(say(&home, &["doctor"]).out.contains("its base_url "), "{url}");
    }
}
