//! Payload files that no event came to name: they are gone after the next start, and no others are.

use crate::ask::Ask;
use crate::daemon::Home;
use crate::disk::Disk;
use crate::ledger_maker::write_ledgers;
use holon::ledger::Store;
use holon::ledger::blob::Blobs;
use holon::ledger::memory::MemoryStore;
use holon::offline::verify::verify;
use holon::words::content::Blob;
use holon::words::hash::Hash;
use holon::words::id::Boot;
use holon::words::limit::BLOB_IN_TRANSACTION_BYTES_MAX;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A text that is too large for a row.
fn large(word: &str) -> String {
    word.repeat(BLOB_IN_TRANSACTION_BYTES_MAX)
}

/// A folder of payloads, under a ledger.
struct Shelf {
    store: Arc<dyn Store>,
    folder: TempDir,
}

impl Shelf {
    /// One over each store.
    fn each(test: impl Fn(&Self)) {
        let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::default()), Arc::new(Disk::default().store())];
        stores.into_iter().for_each(|store| test(&Self { store, folder: tempfile::tempdir().expect("a folder") }));
    }

    fn blobs(&self, boot: u64) -> Blobs {
        Blobs::new(self.store.clone(), self.folder.path().to_owned()).in_boot(Boot(boot))
    }

    /// Keeps a large payload in a boot, as before an append.
    fn keep(&self, boot: u64, word: &str) -> Hash {
        let blob = Blob::new(large(word).into_bytes());
        let hash = blob.hash;
        assert!(self.blobs(boot).keep_large(vec![blob]).expect("a file is written").is_empty());
        hash
    }

    fn holds(&self, hash: &Hash) -> bool {
        self.blobs(0).check(hash).is_ok()
    }
}

#[test]
fn a_file_that_a_crash_left_without_its_event_is_gone_after_the_next_boot() {
    Shelf::each(|shelf| {
        let orphan = shelf.keep(1, "orphan");
        let unfinished = shelf.folder.path().join("new/1/unfinished-0");
        fs::write(&unfinished, "half").expect("writable");
        assert!(shelf.holds(&orphan));

        shelf.blobs(2).sweep().expect("swept");
        assert!(!shelf.holds(&orphan) && !unfinished.exists());
        shelf.blobs(2).sweep().expect("there is nothing more to do");
        assert_eq!(shelf.keep(2, "orphan"), orphan);
        assert!(shelf.holds(&orphan), "it can be kept again");
    });
}

#[test]
fn files_that_events_name_stay_however_often_they_are_swept() {
    Shelf::each(|shelf| {
        let ours = shelf.blobs(1);
        write_ledgers(&*shelf.store, Some(&ours), &["alpha", "bravo"], 200);
        for boot in 2..5 {
            shelf.blobs(boot).sweep().expect("swept");
            let report = verify(&*shelf.store, &ours, None, &mut |_| {}).expect("readable");
            assert!(report.is_whole(), "{report:?}");
        }
    });
}

#[test]
fn what_is_not_marked_or_marked_by_another_ledger_stays() {
    Shelf::each(|shelf| {
        let (early, foreign) = (shelf.keep(1, "early"), shelf.keep(9, "foreign"));
        fs::remove_dir_all(shelf.folder.path().join("new/1")).expect("it is there");
        for boot in [2, 10] {
            shelf.blobs(boot).sweep().expect("swept");
        }
        assert!(shelf.holds(&early), "from before there were marks");
        assert!(shelf.holds(&foreign), "of a ledger that has seen more boots");
    });
}

#[tokio::test]
async fn the_file_of_a_refused_request_is_gone_after_a_restart() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let body = |text: &str| json!({"text": text, "origin": {"kind": "webhook", "source": "test"}});
    let (named, refused) = (large("named "), large("refused "));
    let sent = ask.post_as("first", "/agents/main/enqueue", body(&named)).await.ok();
    daemon.create("other").await;
    daemon.enqueue("other", &named).await;
    // The refusal of what another request has brought takes nothing away from that one.
    for text in [&refused, &named] {
        ask.post_as("second", "/agents/main/enqueue", body("small")).await.ok();
        ask.post_as("second", "/agents/main/enqueue", body(text)).await.refused(422, "idempotency_key_reused");
    }
    assert!(file(&home, &named) && file(&home, &refused));
    daemon.kill();

    let daemon = home.serve();
    assert!(file(&home, &named) && !file(&home, &refused));
    let message = daemon.get(&format!("/agents/main/messages/{}", sent["message_id"].as_str().unwrap())).await;
    assert!(message.to_string().contains(&named), "the text is whole");
    assert!(daemon.is_whole("main").await && daemon.is_whole("other").await);
    let message = daemon.enqueue("main", &refused).await;
    daemon.settled("main", &message).await;
    assert!(file(&home, &refused), "it can be sent again");
}

/// Whether the text lies in a file of the home.
fn file(home: &Home, text: &str) -> bool {
    let name = Hash::of(text.as_bytes()).to_string();
    Path::new(&home.path()).join("blobs").join(&name[..2]).join(&name).exists()
}
