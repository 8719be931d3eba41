//! The prompt of any past round is read back as the model got it.

use crate::daemon::{Home, of_kind};
use crate::model_server::{Answer, ModelServer};
use serde_json::Value;

const COMMAND: &str = r#"{"cmd": "seq 1 3"}"#;

fn read_back(home: &Home, arguments: &[&str]) -> Value {
    let said = home.run(&[&["ledger", "prompt", "--json"], arguments].concat());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).expect("JSON")
}

fn texts(prompt: &Value) -> Vec<&str> {
    let sections = prompt["sections"].as_array().expect("sections");
    sections.iter().map(|section| section["text"].as_str().expect("text")).collect()
}

#[tokio::test]
async fn every_round_is_read_back_as_it_was_sent_with_and_without_a_server() {
    let server = ModelServer::start();
    server.reply(Answer::text("first").call("call-1", "ExecCommand", COMMAND).whole());
    server.reply(Answer::text("then").call("call-2", "ExecCommand", COMMAND).whole());
    server.reply(Answer::text("done").whole());
    let home = Home::new().asking(&server);
    let daemon = home.serve();
    let message = daemon.prompt("main", "count for me").await;
    daemon.answer("main", &message).await;
    let requested = of_kind(&daemon.events("main").await, "round_requested").into_iter().cloned().collect::<Vec<_>>();
    let served: Vec<Value> = ["1", "2", "3"].map(|round| read_back(&home, &["run-1", "--round", round])).into();
    let sent: Vec<String> = server.received().iter().map(|request| request.body.to_string()).collect();
    assert_eq!((requested.len(), sent.len()), (3, 3));
    for ((prompt, requested), sent) in served.iter().zip(&requested).zip(&sent) {
        assert_eq!(prompt["request"], requested["request"], "it is the recorded one");
        let said = texts(prompt).into_iter().find(|text| text.contains("count for me")).expect("the message");
        assert!(sent.contains(&Value::from(said).to_string()), "{said} was sent in {sent}");
    }
    assert_eq!(read_back(&home, &["run-1"]), served[2], "the last round, when none is named");
    let counted = |prompt: &Value| texts(prompt).iter().filter(|text| text.contains(r"1\\n2\\n3")).count();
    assert_eq!(served.iter().map(counted).collect::<Vec<_>>(), [0, 1, 2]);

    assert!(daemon.stop().success());
    for (round, prompt) in ["1", "2", "3"].into_iter().zip(&served) {
        assert_eq!(read_back(&home, &["run-1", "--round", round]), *prompt);
    }
}

#[tokio::test]
async fn a_round_that_was_not_asked_for_is_not_made_up() {
    let home = Home::new();
    let daemon = home.serve();
    let message = daemon.prompt("main", "say: hello").await;
    daemon.answer("main", &message).await;
    for arguments in [&["run-9"][..], &["run-1", "--round", "7"], &["run-1", "--agent", "nobody"]] {
        let refused = home.run(&[&["ledger", "prompt"], arguments].concat());
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).starts_with("error: there is no "), "{refused:?}");
    }
    assert!(daemon.stop().success());
    let refused = home.run(&["ledger", "prompt", "run-1", "--round", "7"]);
    assert_eq!(refused.status.code(), Some(1));
}
