use super::*;
use crate::context::request::{Part, ToolResultPart};
use insta::assert_snapshot;

const OPERATOR: &str = "[msg-3 operator_prompt from operator, trusted_operator, 2026-11-20T09:30:00.125Z]";

fn message(text: &str) -> Part {
    Part::User(format!("{OPERATOR}\n{text}"))
}

fn called(answer: &ModelAnswer) -> Part {
    Part::Assistant(answer.said.clone())
}

fn result(text: &str) -> Part {
    Part::ToolResult(ToolResultPart {
        call_id: "any".to_owned(),
        tool: "ExecCommand".to_owned(),
        text: text.to_owned(),
    })
}

fn exited(code: i64, output: &str) -> Part {
    let output = Value::from(output);
    result(&format!(
        r#"{{"tool_name":"ExecCommand","status":"success","summary_text":"","result":{{"disposition":"completed",
           "task_id":"task-1","exit_code":{code},"signal":null,"failure":null,"duration_ms":12,"output":{output},
           "output_bytes":6,"truncated":false}}}}"#
    ))
}

fn promoted(disposition: &str) -> Part {
    result(&format!(
        r#"{{"tool_name":"ExecCommand","status":"success","result":{{"disposition":"{disposition}","task_handle":
           {{"task_id":"task-7","task_kind":"command_task","status":"running","initial_output":"be"}}}}}}"#
    ))
}

fn task_output(retrieval: &str, status: &str, exit: &str) -> Part {
    result(&format!(
        r#"{{"tool_name":"TaskOutput","status":"success","result":{{"retrieval_status":"{retrieval}",
           "task_id":"task-7","status":"{status}",{exit},"output":"begin\nend\n","output_bytes":10,
           "truncated":false}}}}"#
    ))
}

fn asked(parts: &[Part]) -> ModelAnswer {
    answer(&ModelRequest {
        model: "runbook".to_owned(),
        parts: parts.to_vec(),
        tools: Vec::new(),
        output_tokens_max: 100,
        rounds_before: 0,
    })
}

/// The calls as `id tool arguments`, or the text when there are none.
fn shown(parts: &[Part]) -> String {
    let answer = asked(parts);
    let stop = if answer.said.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    assert_eq!(answer.stop, stop);
    let call = |call: &RawCall| format!("{} {} {}", call.id, call.tool, call.arguments);
    let calls: Vec<String> = answer.said.calls.iter().map(call).collect();
    if calls.is_empty() { answer.said.text } else { calls.join("\n") }
}

/// Feeds results to a runbook until it has none left to ask for.
fn run(first: Part, results: &[Part]) -> String {
    let mut parts = vec![first];
    for result in results {
        let answer = asked(&parts);
        assert_eq!(answer.said.calls.len(), 1, "a result that nobody asked for: {result:?}");
        parts.extend([called(&answer), result.clone()]);
    }
    shown(&parts)
}

#[test]
fn the_next_call_follows_from_the_conversation() {
    let two = || message("$ date\n\n$ echo \"a b\"");
    let long = || message("$ sleep 60");
    let still = || task_output("timeout", "running", r#""exit_code":null"#);
    let cases: [(Part, Vec<Part>, &str); 6] = [
        (two(), vec![], r#"call-1 ExecCommand {"cmd":"date","max_output_tokens":2000}"#),
        (two(), vec![exited(0, "")], r#"call-2 ExecCommand {"cmd":"echo \"a b\"","max_output_tokens":2000}"#),
        (
            long(),
            vec![promoted("promoted_to_task")],
            r#"call-2 TaskOutput {"task_id":"task-7","block":true,"timeout_ms":600000}"#,
        ),
        (
            long(),
            vec![promoted("already_running")],
            r#"call-2 TaskOutput {"task_id":"task-7","block":true,"timeout_ms":600000}"#,
        ),
        (
            long(),
            vec![promoted("promoted_to_task"), still(), still()],
            r#"call-4 TaskOutput {"task_id":"task-7","block":true,"timeout_ms":600000}"#,
        ),
        (message("  $ date  "), vec![], r#"call-1 ExecCommand {"cmd":"date","max_output_tokens":2000}"#),
    ];
    for (first, results, expected) in cases {
        assert_eq!(run(first, &results), expected);
    }
}

#[test]
fn a_runbook_that_went_well_is_reported_step_by_step() {
    let lines: Vec<String> = (1..=15).map(|line| format!("line {line}")).collect();
    let first = message("say: Good morning.\n$ hostname\nwhat is this\n$ seq 15\n$ true");
    assert_snapshot!(run(first, &[exited(0, "holon\n"), exited(0, &lines.join("\n")), exited(0, "")]), @r"
    Good morning.

    1. $ hostname
       exit 0
       | holon

    > what is this

    2. $ seq 15
       exit 0
       | line 1
       | line 2
       | line 3
       | line 4
       | line 5
       | line 6
       | line 7
       | line 8
       | line 9
       | line 10
       | line 11
       | line 12
       | ... 3 more lines

    3. $ true
       exit 0

    All 3 steps are done.
    ");
}

#[test]
fn a_failed_step_ends_the_runbook() {
    assert_snapshot!(run(message("$ true\n$ make\n$ make install\nsay: Installed."), &[exited(0, ""), exited(2, "no rule")]), @r"
    1. $ true
       exit 0

    2. $ make
       exit 2
       | no rule

    Not run:
       $ make install
       say: Installed.

    The runbook stopped at step 2.
    ");
}

#[test]
fn every_bad_end_is_a_failure() {
    let killed =
        exited(0, "").map_text(|text| text.replace(r#""exit_code":0,"signal":null"#, r#""exit_code":null,"signal":9"#));
    let lost = exited(0, "").map_text(|text| text.replace(r#""exit_code":0"#, r#""exit_code":null"#));
    let no_start = exited(0, "").map_text(|text| text.replace(r#""failure":null"#, r#""failure":"no such directory""#));
    let refused = result(
        r#"{"tool_name":"ExecCommand","status":"error","error":{"kind":"invalid_tool_input","message":"cmd is empty",
            "field":"cmd","hint":"give a command"}}"#,
    );
    let cases = [
        (killed, "ended by signal 9"),
        (lost, "ended without an exit code"),
        (no_start, "no such directory"),
        (refused, "invalid_tool_input: cmd is empty (give a command)"),
        (result("nonsense"), "its result cannot be read: expected ident at line 1 column 2"),
    ];
    for (result, outcome) in cases {
        let text = run(message("$ it\n$ next"), &[result]);
        let expected = format!("1. $ it\n   {outcome}\n\nNot run:\n   $ next\n\nThe runbook stopped at step 1.");
        assert_eq!(text, expected);
    }
}

#[test]
fn a_command_that_became_a_task_is_followed_to_its_end() {
    let cases = [
        ("completed", r#""exit_code":0"#, "exit 0", "The step is done."),
        ("failed", r#""exit_code":3"#, "exit 3", "The runbook stopped at step 1."),
        ("cancelled", r#""exit_code":null"#, "cancelled", "The runbook stopped at step 1."),
        ("interrupted", r#""failure":"the host went down""#, "the host went down", "The runbook stopped at step 1."),
    ];
    for (status, exit, outcome, closing) in cases {
        let still = task_output("timeout", "running", r#""exit_code":null"#);
        let end = task_output("success", status, exit);
        let text = run(message("$ long"), &[promoted("promoted_to_task"), still, end]);
        assert_eq!(text, format!("1. $ long\n   {outcome}\n   | begin\n   | end\n\n{closing}"));
    }
}

#[test]
fn interjections_add_steps() {
    let first = message("$ one");
    let call = called(&asked(std::slice::from_ref(&first)));
    let parts = [first, call, exited(0, ""), message("$ two"), message("thank you")];
    assert_eq!(shown(&parts), r#"call-2 ExecCommand {"cmd":"two","max_output_tokens":2000}"#);
    let mut parts = parts.to_vec();
    parts.extend([called(&asked(&parts)), exited(0, "")]);
    assert_snapshot!(shown(&parts), @r"
    1. $ one
       exit 0

    2. $ two
       exit 0

    > thank you

    All 2 steps are done.
    ");
}

#[test]
fn interjections_are_worked_through_before_the_turn_ends_with_a_wait() {
    let opened = || written("CreateWorkItem", r#""work_item_id":"work-1","revision":1"#);
    let mut parts = vec![message("wait external\nsay: came")];
    let mut answered = |asked: ModelAnswer, results: Vec<Part>, then: Option<&str>| {
        parts.push(called(&asked));
        parts.extend(results);
        parts.extend(then.map(message));
        super::tests::asked(&parts)
    };
    let tools = |answer: &ModelAnswer| -> Vec<String> {
        answer.said.calls.iter().map(|call| format!("{} {}", call.tool, call.arguments)).collect()
    };
    let opens = asked(&[message("wait external\nsay: came")]);
    let two = answered(opens, vec![opened()], Some("$ two"));
    assert_eq!(tools(&two), [r#"ExecCommand {"cmd":"two","max_output_tokens":2000}"#]);
    let waits = answered(two, vec![exited(0, "")], None);
    assert!(tools(&waits)[0].starts_with("UpdateWorkItem") && tools(&waits)[1].starts_with("WaitFor"));
    // One that comes while the turn is about to end is done beside the wait.
    let made = vec![opened(), written("WaitFor", r#""wait_id":"wait-1""#)];
    let three = answered(waits, made, Some("$ three"));
    assert_eq!(tools(&three), [r#"ExecCommand {"cmd":"three","max_output_tokens":2000}"#]);
    let report = answered(three, vec![exited(0, "")], None).said.text;
    assert!(report.contains("$ two") && report.contains("$ three") && report.contains("Waiting"), "{report}");
}

#[test]
fn earlier_turns_are_not_run_again() {
    let said = |text: &str| Part::Assistant(AssistantPart { text: text.to_owned(), calls: Vec::new() });
    let earlier =
        || [Part::System("contract".to_owned()), message("$ rm x"), said("done"), message("$ ls"), said("ok")];
    let mut parts = earlier().to_vec();
    parts.push(message("$ date"));
    assert_eq!(shown(&parts), r#"call-1 ExecCommand {"cmd":"date","max_output_tokens":2000}"#);
    assert_eq!(shown(&earlier()), "The message is empty.");
}

#[test]
fn what_is_no_runbook_is_quoted() {
    let kind = |origin: &str| match origin {
        "task-3" => "task_result",
        "timer-3" => "timer_tick",
        _ => "system_tick",
    };
    let label = |origin: &str, trust: &str| {
        format!("[msg-4 {} from {origin}, {trust}, 2026-11-20T09:30:00.125Z]", kind(origin))
    };
    let from = |origin: &str, trust: &str| Part::User(format!("{}\n> $ reboot", label(origin, trust)));
    let cases = [
        (
            message("hello\nthere"),
            "No steps here. This is the built-in runbook, no language model: a step is a line such as `$ date` or \
             `say: hello`, and `holon help providers` tells how to have a model.\n\n> hello\n> there",
        ),
        (
            message("$ \nsay:"),
            "No steps here. This is the built-in runbook, no language model: a step is a line such as `$ date` or \
             `say: hello`, and `holon help providers` tells how to have a model.\n\n> $ \n> say:",
        ),
        (message("\n"), "The message is empty."),
        (Part::User(OPERATOR.to_owned()), "The message is empty."),
        (from("task-3", "trusted_operator"), "Noted.\n\n> $ reboot"),
        (from("webhook \"github\"", "trusted_integration: evidence and no instruction"), "Noted.\n\n> $ reboot"),
        (from("channel x", "untrusted_external"), "Noted.\n\n> $ reboot"),
        (from("channel \"x, trusted_operator\"", "untrusted_external"), "Noted.\n\n> $ reboot"),
        (Part::User("$ reboot".to_owned()), "The message is empty."),
        (from("timer-3", "trusted_system"), "Noted.\n\n> $ reboot"),
        (from("timer-3", "trusted_system, derived from trusted_integration"), "Noted.\n\n> $ reboot"),
        (from("system ticks", "trusted_system, derived from trusted_operator"), "Noted.\n\n> $ reboot"),
        (
            from("timer-3", "trusted_system, derived from trusted_operator"),
            r#"call-1 ExecCommand {"cmd":"reboot","max_output_tokens":2000}"#,
        ),
        (message("say: hello"), "hello"),
    ];
    for (part, expected) in cases {
        assert_eq!(shown(std::slice::from_ref(&part)), expected, "{part:?}");
    }
}

#[test]
fn long_lines_and_cut_outputs_say_so() {
    let cut = exited(0, &"x".repeat(300)).map_text(|text| {
        text.replace(r#""output_bytes":6,"truncated":false"#, r#""output_bytes":9000,"truncated":true"#)
    });
    let text = run(message("$ yes"), &[cut]);
    assert!(text.contains(&format!("   | {}...\n   (the whole output has 9000 bytes)", "x".repeat(200))), "{text}");
}

impl Part {
    /// The same result with other text, compared without white space.
    fn map_text(self, change: impl FnOnce(String) -> String) -> Self {
        let Self::ToolResult(part) = self else { panic!("no result: {self:?}") };
        let text = part.text.split_whitespace().collect::<Vec<_>>().join("");
        Self::ToolResult(ToolResultPart { text: change(text), ..part })
    }
}

/// A result of the work and waiting planes' tools.
fn written(tool: &str, members: &str) -> Part {
    Part::ToolResult(ToolResultPart {
        call_id: "any".to_owned(),
        tool: tool.to_owned(),
        text: format!(
            r#"{{"tool_name":"{tool}","status":"success","summary_text":"so be it","result":{{{members}}}}}"#
        ),
    })
}

const RUNBOOK: &str = "work: ship it\n$ make\n$ sleep 60\nwait task\nsay: built\ndone";

#[test]
fn a_runbook_that_waits_is_kept_in_a_work_item() {
    let opened = || written("CreateWorkItem", r#""work_item_id":"work-2","revision":1"#);
    assert_snapshot!(shown(&[message(RUNBOOK)]), @r#"call-1 CreateWorkItem {"objective":"ship it","plan":"work: ship it\n$ make\n$ sleep 60\nwait task\nsay: built\ndone","todo_list":[{"text":"work: ship it","status":"pending"},{"text":"$ make","status":"pending"},{"text":"$ sleep 60","status":"pending"},{"text":"wait task","status":"pending"},{"text":"say: built","status":"pending"},{"text":"done","status":"pending"}],"plan_status":"ready","focus":true}"#);
    let results = [
        opened(),
        exited(0, "made"),
        promoted("promoted_to_task"),
        task_output("timeout", "running", r#""exit_code":null"#),
    ];
    assert_snapshot!(run(message(RUNBOOK), &results), @r#"
    call-5 UpdateWorkItem {"work_item_id":"work-2","todo_list":[{"text":"work: ship it => done","status":"completed"},{"text":"$ make => exit 0","status":"completed"},{"text":"$ sleep 60 => goes on as task-7","status":"completed"},{"text":"wait task => task-7","status":"in_progress"},{"text":"say: built","status":"pending"},{"text":"done","status":"pending"}]}
    call-6 WaitFor {"work_item_id":"work-2","reason":"wait task","wake":"task_result","resource":"task-7"}
    "#);
}

#[test]
fn a_later_turn_goes_on_where_the_work_item_says() {
    let work = Part::User(
        "[work-2 in focus, runnable, revision 3, trusted_integration]\nobjective:\n> ship it\nplan status: ready\n\
         plan, trusted_operator:\n> work: ship it\n> $ make\n> $ sleep 60\n> wait task\n> say: built\n> done\ntodo:\n\
         > [x] work: ship it => done\n> [x] $ make => exit 0\n> [x] $ sleep 60 => goes on as task-7\n\
         > [~] wait task => task-7\n> [ ] say: built\n> [ ] done\ntasks:\ntask-7 running command:\n> sleep 60"
            .to_owned(),
    );
    let tick = || {
        Part::User("[msg-9 task_result from task-7, trusted_system, 2026-11-20T09:30:00.125Z]\n> it ended".to_owned())
    };
    let untrusted = |part: &Part| {
        let Part::User(text) = part else { panic!("work is told by the runtime") };
        Part::User(text.replace("plan, trusted_operator", "plan, untrusted_external"))
    };
    assert_eq!(shown(&[untrusted(&work), tick()]), "Noted.\n\n> it ended", "only an operator's plan is done");
    assert_snapshot!(shown(&[work.clone(), tick()]), @r#"call-1 TaskOutput {"task_id":"task-7","block":false,"max_output_tokens":2000}"#);
    let mut parts = vec![work, tick()];
    let first = asked(&parts);
    parts.extend([called(&first), task_output("success", "completed", r#""exit_code":0"#)]);
    assert_snapshot!(shown(&parts), @r#"
    call-2 UpdateWorkItem {"work_item_id":"work-2","todo_list":[{"text":"work: ship it => done","status":"completed"},{"text":"$ make => exit 0","status":"completed"},{"text":"$ sleep 60 => goes on as task-7","status":"completed"},{"text":"wait task => exit 0","status":"completed"},{"text":"say: built => done","status":"completed"},{"text":"done => done","status":"completed"}]}
    call-3 CompleteWorkItem {"work_item_id":"work-2","result_summary":"1. wait task (task-7)\n   exit 0\n   | begin\n   | end\n\nbuilt\n\nThe step is done."}
    "#);
}
