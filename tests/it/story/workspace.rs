//! Workspaces and worktrees, and calls that a restart cuts.

use super::{check, tell};
use crate::world::World;
use holon::words::limit::SKILLS_MAX;

#[test]
fn a_folder_is_attached_once_and_the_active_one_cannot_be_detached() {
    check(
        r#"
        > attach /work
        workspace_attached workspace=ws-1 anchor=/work
        workspace_entered workspace.attached=ws-1 execution_root=/work projection=canonical_root cwd=""
        > attach /work
        = ws-1
        > attach /other
        workspace_attached workspace=ws-2 anchor=/other
        workspace_entered workspace.attached=ws-2 execution_root=/other projection=canonical_root cwd=""
        > detach ws-2
        ! workspace_id is the active workspace; leave it first
        > detach ws-1
        workspace_detached workspace=ws-1
        > leave
        workspace_exited workspace.attached=ws-2
        > leave
        = done
        > detach ws-2
        workspace_detached workspace=ws-2
        > detach ws-2
        ! there is no workspace ws-2
        "#,
    );
}

#[test]
fn a_skill_is_installed_once_and_there_are_only_so_many() {
    check(
        r#"
        > install mend named linked
        skill_installed name=mend source=named mode=linked
        > install mend local copied
        ! the skill mend is installed already
        > uninstall other
        ! there is no skill other
        > uninstall mend
        skill_uninstalled name=mend
        > uninstall mend
        ! there is no skill mend
        > posture
        idle nothing_open []
        "#,
    );
    let mut world = World::new();
    for number in 0..SKILLS_MAX {
        tell(&mut world, &format!("install s{number} local linked"));
    }
    let refused = tell(&mut world, "install more local linked");
    assert_eq!(refused, [format!("! there are {SKILLS_MAX} skills already, which is the most there may be")]);
    tell(&mut world, "uninstall s0");
    assert_eq!(tell(&mut world, "install more local linked").len(), 1);
    assert_eq!(world.state.workspaces.skills.len(), SKILLS_MAX);
}

#[test]
fn a_private_child_is_given_no_skills() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"mend it"}; call; bring
        > of main.c1 install mend named linked
        main.c1: ! the agent is private: only its parent sends it messages
        "#,
    );
}

#[test]
fn a_call_attaches_enters_leaves_and_detaches() {
    check(
        r#"
        given prompt go; begin; round; answer | AttachWorkspace {"path":"/work"}
        > call
        call 1/0 attempt 9 boot 1
        > bring
        workspace_attached workspace=ws-1 anchor=/work
        workspace_entered workspace.attached=ws-1 execution_root=/work projection=canonical_root cwd=""
        result 1/0 in_workspace.workspace.attached=ws-1 in_workspace.root=/work in_workspace.cwd=""
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 14 boot 1 model 0
        > answer | UseWorkspace {"workspace_id":"agent_home"} | DetachWorkspace {"workspace_id":"ws-1"} | UseWorkspace {"workspace_id":"ws-1"}
        said 2:  (3 calls)
        > call
        call 2/0 attempt 16 boot 1
        > bring
        workspace_entered workspace=agent_home projection=canonical_root cwd=""
        result 2/0 in_workspace.workspace=agent_home in_workspace.cwd=""
        workspace_detached workspace=ws-1
        result 2/1 detached.workspace=ws-1
        > call
        call 2/2 attempt 21 boot 1
        > bring
        result 2/2 refused not_found
        > round
        round 3 keeps 4 adds assistant tool_result tool_result tool_result
        round 3 attempt 24 boot 1 model 0
        > answer done
        said 3: done (0 calls)
        brief-2 result msg-1: done
        msg-1 settled processed run-1
        run-1 completed after 3 rounds
        "#,
    );
}

#[test]
fn a_workspace_stays_when_the_turn_ends_and_when_the_runtime_restarts() {
    check(
        r#"
        given prompt go; begin; round; answer | AttachWorkspace {"path":"/work"}; call; bring; round; answer done; boot
        > attach /work
        = ws-1
        > detach ws-1
        ! workspace_id is the active workspace; leave it first
        "#,
    );
}

#[test]
fn a_patch_that_a_restart_cut_is_not_made_twice_and_a_look_is_but_not_for_ever() {
    check(
        r#"
        given prompt go; begin; round; answer | ApplyPatch {"patch":"--- a"} | ReadFile {"path":"a"}; call
        > owed
        RunCall { run: RunId(1), attempt: EventSeq(9) }
        > boot
        > owed
        BeginCall { run: RunId(1), round: 1, call: 0, after: EventSeq(9) }
        > call
        result 1/0 =interrupted
        > call
        call 1/1 attempt 11 boot 2
        > boot
        > call
        call 1/1 attempt 12 boot 3
        > boot
        > call
        call 1/1 attempt 13 boot 4
        > boot
        > call
        result 1/1 refused attempts_exhausted
        "#,
    );
}

#[test]
fn a_worktree_outlives_its_task_until_it_is_settled_and_is_settled_once() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"mend it","workspace_mode":"worktree"}; call
        > bring
        agent_spawned child=main.c1 preset=private_child task=task-1
        task_child_spawned task=task-1 child=main.c1 summary="mend it" mode=worktree
        worktree_created_for_task task=task-1 worktree.repository=/work worktree.root=/work/main.c1 worktree.branch=holon/main.c1 worktree.base_commit=abc
        result 1/0 spawned.agent=main.c1 spawned.task=task-1
        main.c1: created main.c1
        main.c1: workspace_attached workspace=ws-1 anchor=/work/main.c1
        main.c1: workspace_entered workspace.attached=ws-1 execution_root=/work/main.c1 projection=git_worktree_root cwd=""
        main.c1: msg-1 enqueued next internal_followup trusted_system: mend it
        > settle task-1 removed
        ! there is nothing to do
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 15 boot 1 model 0
        > answer it looks
        said 2: it looks (0 calls)
        brief-2 result msg-1: it looks
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > of main.c1 begin
        main.c1: run-1 begun on msg-1
        main.c1: incoming msg-1
        > of main.c1 round
        main.c1: round 1 keeps 0 adds contract message
        main.c1: round 1 attempt 8 boot 1 model 0
        > of main.c1 answer mended
        main.c1: said 1: mended (0 calls)
        main.c1: brief-1 result msg-1: mended
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 completed after 1 rounds
        main.c1: delegation_reported status=completed run=run-1 report=mended usage.input_tokens=10 usage.output_tokens=5 usage.rounds_unknown=0
        > take main.c1
        errand_taken from=main.c1 errand=message entry=13
        task-1 completed, reported
        msg-2 enqueued next task_result trusted_system: task-1 completed, it has reported
        main.c1: outbox_delivered entry=13 outcome=taken
        main.c1: agent_archive_requested reason=delegation_ended
        main.c1: agent_archived
        > owed
        StartTurn
        SettleWorktree { task: TaskId(1) }
        > settle task-1 retained
        worktree_retained_for_review task=task-1 worktree.repository=/work worktree.root=/work/main.c1 worktree.branch=holon/main.c1 worktree.base_commit=abc summary.head_commit=def summary.commits=1 summary.changed_total=0 summary.insertions=3 summary.deletions=1
        > settle task-1 removed
        ! there is nothing to do
        "#,
    );
}

#[test]
fn a_worktree_without_changes_goes_and_one_that_git_cannot_tell_of_stays() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"one","workspace_mode":"worktree"} | SpawnAgent {"initial_message":"two","workspace_mode":"worktree"}; call; bring; call; bring; round; answer they look
        given end task-1; end task-2; direct task-1; direct task-2; take main.c1; take main.c2
        > owed
        StartTurn
        SettleWorktree { task: TaskId(1) }
        SettleWorktree { task: TaskId(2) }
        > settle task-1 removed
        worktree_auto_cleaned_up task=task-1 worktree.repository=/work worktree.root=/work/main.c1 worktree.branch=holon/main.c1 worktree.base_commit=abc
        > settle task-2 left
        worktree_auto_cleanup_failed task=task-2 worktree.repository=/work worktree.root=/work/main.c2 worktree.branch=holon/main.c2 worktree.base_commit=abc reason="git does not answer"
        > owed
        StartTurn
        "#,
    );
}

#[test]
fn an_agent_is_sealed_after_its_worktrees_are_settled() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"one","workspace_mode":"worktree"}; call; bring; round; answer it looks
        > archive
        task-1 to be ended: agent_archived
        agent_archive_requested reason=operator
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=20
        main.c1: msg-1 settled dropped: agent_archived
        main.c1: agent_archive_requested reason=operator
        main.c1: delegation_reported status=cancelled report="(There is no brief.)" usage.input_tokens=0 usage.output_tokens=0 usage.rounds_unknown=0
        child_directed task=task-1 lifecycle=archived entry=20
        > take main.c1
        errand_taken from=main.c1 errand=message entry=8
        task-1 cancelled, reported
        main.c1: outbox_delivered entry=8 outcome=taken
        main.c1: agent_archived
        > posture
        archived archiving [21]
        > settle task-1 removed
        worktree_auto_cleaned_up task=task-1 worktree.repository=/work worktree.root=/work/main.c1 worktree.branch=holon/main.c1 worktree.base_commit=abc
        agent_archived
        > posture
        archived archived [26]
        "#,
    );
}
