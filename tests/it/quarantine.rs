//! Homes that are in use or damaged: refused readably, or served as far as they are whole.

use crate::daemon::Home;
use holon::ledger::redb::table::{AGENTS, HEADS, INDEX, LOG};
use redb::{Database, ReadableDatabase, ReadableTable};
use serde_json::Value;
use std::fs;

/// What is done to the ledger of an agent behind the daemon's back.
#[derive(Clone, Copy, Debug)]
pub enum Damage {
    /// A byte of the record is another.
    Flipped(u64),
    /// The record is not where the index says.
    Missing(u64),
    /// The head names another link.
    Head,
}

impl Damage {
    pub fn inflict(self, home: &Home, agent: &str) {
        let file = Database::open(home.path().join("ledger.redb")).expect("nobody serves it");
        let number = {
            let agents = file.begin_read().unwrap().open_table(AGENTS).unwrap();
            agents.get(agent).unwrap().expect("the agent is there").value()
        };
        let change = file.begin_write().unwrap();
        {
            let index = change.open_table(INDEX).unwrap();
            let place = |seq: u64| index.get((number, seq)).unwrap().expect("the event is there").value();
            let mut log = change.open_table(LOG).unwrap();
            match self {
                Self::Flipped(seq) => {
                    let mut record = log.get(place(seq)).unwrap().unwrap().value().to_vec();
                    *record.last_mut().unwrap() ^= 1;
                    log.insert(place(seq), record.as_slice()).unwrap();
                }
                Self::Missing(seq) => drop(log.remove(place(seq)).unwrap()),
                Self::Head => {
                    let mut heads = change.open_table(HEADS).unwrap();
                    let (seq, _) = heads.get(number).unwrap().unwrap().value();
                    heads.insert(number, (seq, [7; 32])).unwrap();
                }
            }
        }
        change.commit().unwrap();
    }
}

fn refusal(home: &Home) -> (Option<i32>, String) {
    let ended = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "", "nothing is ready");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[tokio::test]
async fn a_second_server_on_a_home_is_refused() {
    let home = Home::new();
    let daemon = home.serve();
    let (code, said) = refusal(&home);
    assert_eq!(code, Some(1));
    assert!(said.contains("in use by another holon") && said.contains("hint: a server runs on this home"), "{said}");
    let message = daemon.prompt("main", "say: the first goes on").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "the first goes on");
}

#[test]
fn a_ledger_file_that_does_not_open_stops_the_server() {
    let home = Home::new();
    drop(home.serve());
    for garbage in [vec![0x5a; 64 * 1024], b"not a ledger".to_vec()] {
        fs::write(home.path().join("ledger.redb"), &garbage).unwrap();
        let (code, said) = refusal(&home);
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains("ledger.redb does not open") && said.contains("hint: restore ledger.redb"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        assert_eq!(fs::read(home.path().join("ledger.redb")).unwrap(), garbage, "the file is kept for inspection");
    }
}

#[tokio::test]
async fn a_damaged_agent_is_set_apart_and_the_others_are_served() {
    for damage in [Damage::Flipped(4), Damage::Missing(6), Damage::Head] {
        let home = Home::new();
        let daemon = home.serve();
        for agent in ["hurt", "well"] {
            daemon.create(agent).await;
            let message = daemon.prompt(agent, "say: before").await;
            daemon.answer(agent, &message).await;
        }
        daemon.kill();
        damage.inflict(&home, "hurt");

        let daemon = home.serve();
        let problem = daemon.problem("/agents/hurt/status").await;
        assert_eq!((problem.status, problem.code.as_str()), (503, "agent_quarantined"), "{damage:?}");
        let reason = problem.more["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("hurt") && problem.hint.is_some(), "{damage:?}: {reason}");
        let refused = daemon.refusal("/control/agents/hurt/prompt", serde_json::json!({"text": "no"})).await;
        assert_eq!(refused.code, "agent_quarantined");
        let verified = daemon.get("/agents/hurt/ledger/verify").await;
        assert_eq!(verified["ok"], false);
        let told = verified["damage"].as_str().unwrap();
        assert!(told.contains("hurt") && told.contains(|digit: char| digit.is_ascii_digit()), "{damage:?}: {told}");

        let list = daemon.get("/agents/list").await;
        let listed = |agent: &str| -> Value {
            let entries = list.as_array().unwrap().iter();
            entries.clone().find(|entry| entry["identity"]["agent_id"] == agent).expect("it is listed").clone()
        };
        assert_eq!(listed("hurt")["quarantined"], reason.as_str());
        assert_eq!(listed("well")["quarantined"], Value::Null);
        let message = daemon.prompt("well", "say: after").await;
        assert_eq!(daemon.answer("well", &message).await["text"], "after");
        assert!(daemon.is_whole("well").await);
    }
}

#[tokio::test]
async fn an_agent_that_was_damaged_at_work_does_not_take_the_server_down() {
    let home = Home::new();
    let (gate, mut signs) = (home.gate("go"), home.signs("running"));
    let daemon = home.serve();
    daemon.create("well").await;
    let waits = format!("$ cd {}; echo > running; read go < go", home.workspace().display());
    let message = daemon.prompt("main", &waits).await;
    let resumed = daemon.prompt("well", &waits).await;
    // Until its command runs, a process that is about to become its supervisor may hold the ledger's file.
    for _ in 0..2 {
        signs.next().await;
    }
    daemon.kill();
    Damage::Flipped(5).inflict(&home, "main");

    let daemon = home.serve();
    gate.open();
    gate.open();
    let answer = daemon.answer("well", &resumed).await;
    assert_eq!(answer["kind"], "result");
    let problem = daemon.problem(&format!("/agents/main/messages/{message}")).await;
    assert_eq!(problem.code, "agent_quarantined");
    let quarantined = daemon.get("/control/runtime/status").await["quarantined"].clone();
    assert_eq!(quarantined[0]["agent_id"], "main");
    assert!(daemon.stop().success());
}
