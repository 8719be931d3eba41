//! Files that a repository names for itself: guidance, skills, file tools and patches stay beneath their root.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home, of_kind};
use crate::other_user::{home_of_each_user, is_root};
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What must never be read.
const CANARY: &str = "canary-4711-of-the-operator";

/// A home with a secret beside its workspace, in its environment and among its own files.
fn with_secrets() -> Home {
    secrets_beside(Home::new())
}

fn secrets_beside(home: Home) -> Home {
    let home = home.environment("OPERATOR_SECRET", CANARY).configured(&format!("# {CANARY}\n"));
    fs::write(secret(&home), CANARY).unwrap();
    home
}

fn secret(home: &Home) -> PathBuf {
    home.workspace().with_file_name("secret")
}

/// `holon serve` in a mount namespace of its own, after `mounts`, a shell's lines.
fn serve_after(home: &Home, mounts: &str) -> Daemon {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("set -e\n{mounts}\nexec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_holon")).args(["serve", "--listen", "127.0.0.1:0"]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOLON_HOME", home.path());
    command.env("OPERATOR_SECRET", CANARY).current_dir(home.workspace());
    home.serve_by(command)
}

/// An agent that works in `folder`, after it has answered once.
async fn answered(daemon: &Daemon, agent: &str, folder: &Path) {
    daemon.create(agent).await;
    let path = folder.canonicalize().expect("the folder is there");
    daemon.post(&format!("/control/agents/{agent}/workspace/attach"), json!({"path": path})).await;
    let message = daemon.prompt(agent, "say: hello").await;
    daemon.answer(agent, &message).await;
}

/// Why the guidance of a scope was not read.
async fn refusal(daemon: &Daemon, agent: &str, scope: &str) -> String {
    let events = daemon.events(agent).await;
    let read = of_kind(&events, "guidance_read").into_iter().rev().find(|read| read["scope"] == scope);
    let read = read.unwrap_or_else(|| panic!("{agent}: nothing says that the guidance was refused"));
    assert!(read["content"].is_null() && read["hash"].is_null(), "{agent}: {read}");
    read["refused"].as_str().unwrap_or_else(|| panic!("{agent}: no reason: {read}")).to_owned()
}

/// Nothing of the secret is in the files of the home that a turn writes, nor in what an agent would be sent.
async fn nothing_leaked(home: &Home, daemon: Daemon, agents: &[&str]) {
    for agent in agents {
        let preview = daemon.post(&format!("/control/agents/{agent}/debug-prompt"), json!({"text": "x"})).await;
        assert!(!preview.to_string().contains(CANARY), "{agent} would be sent the secret");
    }
    assert!(daemon.stop().success());
    let holds = |bytes: &[u8]| bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
    assert!(!holds(&fs::read(home.path().join("ledger.redb")).unwrap()), "the ledger holds the secret");
    assert!(!home.log().contains(CANARY), "the log holds the secret: {}", home.log());
}

fn folder(home: &Home, name: &str) -> PathBuf {
    let folder = home.workspace().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
async fn guidance_of_a_workspace_is_a_file_of_the_workspace() {
    let home = with_secrets();
    symlink("/proc/self/environ", folder(&home, "environ").join("AGENTS.md")).unwrap();
    symlink("../../secret", folder(&home, "beside").join("AGENTS.md")).unwrap();
    symlink(secret(&home), folder(&home, "absolute").join("AGENTS.md")).unwrap();
    symlink(home.path(), folder(&home, "folders").join("up")).unwrap();
    symlink("up/config.toml", folder(&home, "folders").join("AGENTS.md")).unwrap();
    fs::hard_link(secret(&home), folder(&home, "hard").join("AGENTS.md")).unwrap();
    fs::hard_link(home.path().join("config.toml"), folder(&home, "config").join("AGENTS.md")).unwrap();
    nix::unistd::mkfifo(&folder(&home, "pipe").join("AGENTS.md"), Mode::S_IRWXU).unwrap();
    fs::create_dir(folder(&home, "folder").join("AGENTS.md")).unwrap();
    symlink("/dev/zero", folder(&home, "zero").join("AGENTS.md")).unwrap();
    fs::write(folder(&home, "fine").join("GUIDE.md"), "Use tabs here.").unwrap();
    symlink("GUIDE.md", folder(&home, "fine").join("AGENTS.md")).unwrap();
    let daemon = home.serve();
    let cases = [
        ("environ", "outside"),
        ("beside", "outside"),
        ("absolute", "outside"),
        ("folders", "outside"),
        ("hard", "hard link"),
        ("config", "private"),
        ("pipe", "not a regular file"),
        ("folder", "not a regular file"),
        ("zero", "outside"),
    ];
    for (name, reason) in cases {
        answered(&daemon, name, &folder(&home, name)).await;
        let refusal = refusal(&daemon, name, "workspace").await;
        assert!(refusal.contains(reason), "{name}: {refusal}");
        assert!(home.log().contains(&refusal), "the operator is told of {name}: {}", home.log());
    }
    answered(&daemon, "fine", &folder(&home, "fine")).await;
    let preview = daemon.post("/control/agents/fine/debug-prompt", json!({"text": "x"})).await;
    assert!(preview.to_string().contains("Use tabs here."), "a link beneath the root is followed: {preview}");
    nothing_leaked(&home, daemon, &cases.map(|(name, _)| name)).await;
}

#[tokio::test]
async fn guidance_of_the_agent_and_of_the_user_lies_in_their_own_folders() {
    for home in home_of_each_user().into_iter().map(secrets_beside) {
        let own = home.path().join("agents/main");
        fs::create_dir_all(&own).unwrap();
        symlink("/proc/self/environ", own.join("AGENTS.md")).unwrap();
        symlink("config.toml", home.path().join("AGENTS.md")).unwrap();
        let daemon = home.serve();
        let message = daemon.prompt("main", "say: hello").await;
        daemon.answer("main", &message).await;
        assert!(refusal(&daemon, "main", "agent").await.contains("outside"));
        assert!(refusal(&daemon, "main", "user").await.contains("private"));

        // What was refused is read once it is a file.
        fs::remove_file(own.join("AGENTS.md")).unwrap();
        fs::write(own.join("AGENTS.md"), "Be brief.").unwrap();
        let message = daemon.prompt("main", "say: hello").await;
        daemon.answer("main", &message).await;
        let events = daemon.events("main").await;
        let read = of_kind(&events, "guidance_read").into_iter().rfind(|read| read["scope"] == "agent").unwrap();
        assert!(read["refused"].is_null() && read["hash"].is_string(), "{read}");
        nothing_leaked(&home, daemon, &["main"]).await;
    }
}

#[tokio::test]
async fn procfs_and_private_files_under_another_name_are_refused() {
    if !is_root() {
        return; // Only root may mount.
    }
    let home = with_secrets();
    symlink("p/self/environ", folder(&home, "proc").join("AGENTS.md")).unwrap();
    symlink("s/kernel/uevent_seqnum", folder(&home, "sys").join("AGENTS.md")).unwrap();
    for name in ["proc/p", "sys/s", "home", "file"] {
        folder(&home, name);
    }
    symlink("h/config.toml", folder(&home, "home").join("AGENTS.md")).unwrap();
    fs::create_dir(folder(&home, "home").join("h")).unwrap();
    fs::write(folder(&home, "file").join("AGENTS.md"), "").unwrap();
    let (here, own) = (home.workspace().display().to_string(), home.path().display().to_string());
    let daemon = serve_after(
        &home,
        &format!(
            "mount -t proc proc {here}/proc/p\nmount -t sysfs sysfs {here}/sys/s\n\
             mount --bind {own} {here}/home/h\nmount --bind {own}/config.toml {here}/file/AGENTS.md"
        ),
    );
    let cases = [("proc", "kernel"), ("sys", "kernel"), ("home", "private"), ("file", "private")];
    for (name, reason) in cases {
        answered(&daemon, name, &folder(&home, name)).await;
        let refusal = refusal(&daemon, name, "workspace").await;
        assert!(refusal.contains(reason), "{name}: {refusal}");
    }
    nothing_leaked(&home, daemon, &cases.map(|(name, _)| name)).await;
}

#[tokio::test]
async fn a_file_that_becomes_a_link_and_back_is_never_read_through() {
    let home = with_secrets();
    let race = folder(&home, "race");
    fs::write(race.join("AGENTS.md"), "Use tabs here.").unwrap();
    fs::create_dir_all(race.join("inside")).unwrap();
    let daemon = home.serve();
    answered(&daemon, "race", &race).await;
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let racer = std::thread::spawn({
        let secret = secret(&home);
        move || {
            while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                fs::write(race.join("file"), "Use tabs here.").unwrap();
                fs::rename(race.join("file"), race.join("AGENTS.md")).unwrap();
                symlink(&secret, race.join("link")).unwrap();
                fs::rename(race.join("link"), race.join("AGENTS.md")).unwrap();
            }
        }
    });
    let mut previews = Vec::new();
    for _ in 0..200 {
        let preview = daemon.post("/control/agents/race/debug-prompt", json!({"text": "x"})).await.to_string();
        assert!(!preview.contains(CANARY), "{preview}");
        previews.push(preview.contains("Use tabs here."));
    }
    drop(stop);
    racer.join().unwrap();
    assert!(previews.contains(&true), "the file was read in some rounds");
    nothing_leaked(&home, daemon, &["race"]).await;
}

/// A tool call, for a script.
fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

/// What the calls of main's last turn came to.
async fn results(daemon: &Daemon, calls: &[Value], home: &Home) -> Vec<String> {
    let past = daemon.events("main").await;
    let is_round = |entry: &&Value| !entry["entry"]["assistant"].is_null();
    let mut rounds = vec![json!({"text": "past"}); of_kind(&past, "turn_entry").into_iter().filter(is_round).count()];
    rounds.push(json!({"calls": calls}));
    home.rewrite(&json!({"rounds": rounds, "default": {"text": "done"}}));
    let before = past.len();
    let message = daemon.prompt("main", "go on").await;
    daemon.answer("main", &message).await;
    let events = daemon.events("main").await.split_off(before);
    let entries = of_kind(&events, "turn_entry").into_iter();
    entries.filter_map(|entry| Some(entry["entry"].get("tool_result")?["result"].to_string())).collect()
}

fn scripted() -> Home {
    with_secrets().scripted(&json!({"rounds": [], "default": {"text": "done"}}))
}

#[tokio::test]
async fn file_tools_reach_neither_the_kernel_nor_the_home() {
    let home = scripted();
    let daemon = home.serve();
    daemon.create("other").await;
    fs::create_dir_all(home.path().join("agents/other")).unwrap();
    fs::write(home.path().join("agents/other/notes"), CANARY).unwrap();
    fs::create_dir_all(home.path().join("agents/main")).unwrap();
    fs::write(home.path().join("agents/main/notes"), "my own").unwrap();
    daemon.post("/control/agents/main/workspace/attach", json!({"path": "/"})).await;
    let inside = |path: &str| home.path().join(path).display().to_string();
    let read = |path: String| call("ReadFile", json!({"path": path, "max_lines": 10}));
    let refused = [
        "/proc/self/environ".to_owned(),
        format!("/proc/{}/environ", daemon.id()),
        "/sys/kernel/uevent_seqnum".to_owned(),
        inside("config.toml"),
        inside("ledger.redb"),
        inside("agents/other/notes"),
        inside("agents/main/../other/notes"),
    ];
    let search = call("SearchFiles", json!({"pattern": "canary-4711", "path": inside(".")}));
    let calls: Vec<Value> = refused.iter().cloned().map(read).chain([search]).collect();
    let came = results(&daemon, &calls, &home).await;
    for (path, result) in refused.iter().zip(&came) {
        assert!(result.contains("refused"), "{path}: {result}");
        assert!(result.contains("private") || result.contains("kernel"), "{path} is refused for a reason: {result}");
    }
    assert!(!came.concat().contains(CANARY), "{came:#?}");
    let own = results(&daemon, &[read(inside("agents/main/notes"))], &home).await;
    assert!(own[0].contains("my own"), "an agent's own folder is its own: {own:?}");

    let hard = home.workspace().join("hard");
    fs::hard_link(home.path().join("config.toml"), &hard).unwrap();
    let came = results(&daemon, &[read(hard.display().to_string())], &home).await;
    assert!(came[0].contains("refused") && came[0].contains("private"), "{came:?}");
    fs::remove_file(hard).unwrap();
    nothing_leaked(&home, daemon, &["main"]).await;
}

#[tokio::test]
async fn a_search_waits_for_no_pipe() {
    let home = scripted();
    let daemon = home.serve();
    let nested = folder(&home, "nested");
    for name in [".gitignore", ".ignore", "pipe"] {
        nix::unistd::mkfifo(&nested.join(name), Mode::S_IRWXU).unwrap();
    }
    fs::write(nested.join("a.txt"), "needle\n").unwrap();
    symlink(secret(&home), nested.join("link.txt")).unwrap();
    let search = |pattern: &str| call("SearchFiles", json!({"pattern": pattern}));
    let came = results(&daemon, &[search("needle"), search("canary-4711")], &home).await;
    assert!(came[0].contains("nested/a.txt"), "{came:?}");
    nothing_leaked(&home, daemon, &["main"]).await;
}

#[tokio::test]
async fn a_patch_changes_nothing_that_has_another_name() {
    let home = scripted();
    let daemon = home.serve();
    let work = home.workspace();
    let patch = |file: &str| {
        let patch = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-precious\n+made by patch\n");
        call("ApplyPatch", json!({"patch": patch}))
    };
    let create = |file: &str| {
        let patch = format!("--- /dev/null\n+++ b/{file}\n@@ -0,0 +1 @@\n+made by patch\n");
        call("ApplyPatch", json!({"patch": patch}))
    };
    for name in ["g.txt", "f.txt", "target.txt"] {
        fs::write(work.join(name), "precious\n").unwrap();
    }
    let victim = work.with_file_name("victim");
    fs::write(&victim, "precious\n").unwrap();
    fs::hard_link(&victim, work.join(".holon-g.txt.new")).unwrap();
    fs::hard_link(&victim, work.join("linked.txt")).unwrap();
    symlink(&victim, work.join("out.txt")).unwrap();
    symlink("target.txt", work.join("in.txt")).unwrap();
    nix::unistd::mkfifo(&work.join(".holon-f.txt.new"), Mode::S_IRWXU).unwrap();
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    symlink(".git", work.join("innocent")).unwrap();
    let calls = [
        patch("g.txt"),
        patch("f.txt"),
        patch("linked.txt"),
        patch("out.txt"),
        patch("in.txt"),
        create(".git/hooks/pre-commit"),
        create("innocent/hooks/post-checkout"),
    ];
    let came = results(&daemon, &calls, &home).await;
    let is_refused: Vec<bool> = came.iter().map(|result| result.contains("refused")).collect();
    assert_eq!(is_refused, [false, false, false, true, true, true, true], "{came:#?}");
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(text(&victim), "precious\n", "the other name of a file is as it was");
    assert_eq!(text(&work.join("target.txt")), "precious\n");
    for name in ["g.txt", "f.txt", "linked.txt"] {
        assert_eq!(text(&work.join(name)), "made by patch\n", "{name}");
    }
    assert_eq!(fs::read_dir(work.join(".git/hooks")).unwrap().count(), 0);
    assert!(daemon.stop().success(), "nothing hangs");
}

/// Writes a skill's folder, which bears its name.
fn skill(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let name = folder.file_name().unwrap().to_string_lossy();
    fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: Fine.\n---\nUse glue.\n")).unwrap();
}

#[tokio::test]
async fn a_skill_is_made_of_its_own_files() {
    const INSTALL: &str = "/control/agents/main/skills/install";
    let home = with_secrets();
    let front = home.workspace().with_file_name("front");
    let said = |name: &str| format!("---\nname: {name}\ndescription: {CANARY}\n---\n");
    for name in ["symbolic", "hard", "piped", "part"] {
        skill(&folder(&home, name));
    }
    let file = |name: &str| home.workspace().join(name).join("SKILL.md");
    for name in ["symbolic", "hard", "piped"] {
        fs::remove_file(file(name)).unwrap();
    }
    fs::write(&front, said("symbolic")).unwrap();
    symlink(&front, file("symbolic")).unwrap();
    let hard = home.workspace().with_file_name("hard");
    fs::write(&hard, said("hard")).unwrap();
    fs::hard_link(&hard, file("hard")).unwrap();
    nix::unistd::mkfifo(&file("piped"), Mode::S_IRWXU).unwrap();
    fs::hard_link(secret(&home), home.workspace().join("part/data")).unwrap();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let local = |name: &str, mode: &str| json!({"kind": {"kind": "local", "path": home.workspace().join(name).canonicalize().unwrap(), "mode": mode}});
    for name in ["symbolic", "hard", "piped"] {
        for mode in ["linked", "copied"] {
            let problem = ask.post(INSTALL, local(name, mode)).await.refused(422, "invalid_field");
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("SKILL.md")), "{problem}");
        }
    }
    let problem = ask.post(INSTALL, local("part", "copied")).await.refused(422, "invalid_field");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("hard link")), "{problem}");
    nothing_leaked(&home, daemon, &["main"]).await;
}

#[tokio::test]
async fn the_agents_own_folder_leads_no_skill_elsewhere() {
    const INSTALL: &str = "/control/agents/main/skills/install";
    let home = scripted();
    let elsewhere = home.workspace().with_file_name("elsewhere");
    fs::create_dir_all(elsewhere.join("long-work/precious")).unwrap();
    let own = home.path().join("agents/main");
    fs::create_dir_all(&own).unwrap();
    symlink(&elsewhere, own.join("skills")).unwrap();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let builtin = json!({"kind": {"kind": "builtin", "name": "long-work"}});
    assert_ne!(ask.post(INSTALL, &builtin).await.status, 200);
    assert!(elsewhere.join("long-work/precious").exists(), "nothing is removed elsewhere");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1, "nothing is made elsewhere");

    // A link that an operator chose is the one that is followed, whatever the agent has put in its place.
    fs::remove_file(own.join("skills")).unwrap();
    skill(&folder(&home, "mend"));
    let linked = json!({"kind": {"kind": "local", "path": home.workspace().join("mend"), "mode": "linked"}});
    ask.post(INSTALL, linked).await.ok();
    fs::remove_file(own.join("skills/mend")).unwrap();
    symlink(secret(&home).parent().unwrap(), own.join("skills/mend")).unwrap();
    let read = |file: &str| call("ReadFile", json!({"path": own.join("skills/mend").join(file), "max_lines": 5}));
    let came = results(&daemon, &[read("secret"), read("SKILL.md")], &home).await;
    assert!(came[0].contains("refused") && came[1].contains("Use glue."), "{came:?}");
    nothing_leaked(&home, daemon, &["main"]).await;
}
