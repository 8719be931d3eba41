//! Output as it is shown: text within a bound, its head and its tail.

use super::output::{View, notice};
use std::io;

/// Room that the line about the missing part takes at most.
const NOTICE_BYTES_MAX: usize = 48;

/// Output as text for a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// Head and tail, with a line between them that says how many bytes are left out.
    pub text: String,
    /// Bytes that the command has written so far.
    pub bytes: u64,
    /// Whether `text` leaves something out.
    pub cut: bool,
}

/// Shows at most `bytes_max` bytes of text; what is not UTF-8 is shown as replacement characters.
///
/// A bound below the size of the line about the missing part leaves only that line.
pub(super) fn excerpt(view: &View, bytes_max: usize) -> io::Result<Excerpt> {
    let bytes = view.extent().bytes;
    if let Some(text) = whole(view, bytes_max)? {
        return Ok(Excerpt { text, bytes, cut: false });
    }
    let budget = bytes_max.saturating_sub(NOTICE_BYTES_MAX);
    let (head_end, tail_start) = split(view, budget as u64);
    let (head, tail) = (view.read(0, head_end)?, view.read(tail_start, view.kept_bytes())?);
    let (head, head_taken) = head_text(&head, budget - tail.len().min(budget / 2));
    let (tail, tail_taken) = tail_text(&tail, budget - head.len());
    let left_out = bytes.saturating_sub((head_taken + tail_taken) as u64);
    Ok(Excerpt { text: head + &notice(left_out, None) + &tail, bytes, cut: true })
}

fn whole(view: &View, bytes_max: usize) -> io::Result<Option<String>> {
    if view.extent().left_out_bytes() > 0 || view.kept_bytes() > bytes_max as u64 {
        return Ok(None);
    }
    let bytes = view.read(0, view.kept_bytes())?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((text.len() <= bytes_max).then(|| text.into_owned()))
}

/// Where the head ends and the tail begins. Neither reaches over a gap in what is kept.
fn split(view: &View, budget: u64) -> (u64, u64) {
    let (kept, extent) = (view.kept_bytes(), view.extent());
    if kept <= budget {
        return (extent.head_bytes, extent.head_bytes);
    }
    let gap = (extent.left_out_bytes() > 0).then_some(extent.head_bytes);
    let head_end = (budget - budget / 2).min(gap.unwrap_or(kept));
    (head_end, (kept - budget / 2).max(gap.unwrap_or(0)))
}

/// The beginning of `bytes` as text of at most `budget` bytes, and how many of `bytes` it stands for.
fn head_text(bytes: &[u8], budget: usize) -> (String, usize) {
    let (mut text, mut taken) = (String::new(), 0);
    for (character, length) in lossy(&bytes[..bytes.len() - unfinished(bytes)]) {
        if text.len() + character.len_utf8() > budget {
            break;
        }
        text.push(character);
        taken += length;
    }
    (text, taken)
}

/// The end of `bytes` as text of at most `budget` bytes, and how many of `bytes` it stands for.
fn tail_text(bytes: &[u8], mut budget: usize) -> (String, usize) {
    let orphans = bytes.iter().take(3).take_while(|byte| continues(**byte)).count();
    let pieces = lossy(&bytes[orphans..]).collect::<Vec<_>>();
    let fits = |(character, _): &&(char, usize)| {
        let room = budget.checked_sub(character.len_utf8());
        budget = room.unwrap_or(budget);
        room.is_some()
    };
    let count = pieces.iter().rev().take_while(fits).count();
    let shown = &pieces[pieces.len() - count..];
    (shown.iter().map(|(character, _)| character).collect(), shown.iter().map(|(_, length)| length).sum())
}

/// The characters of `bytes`, each with the number of bytes it stands for.
fn lossy(bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|character| (character, character.len_utf8()));
        let invalid = chunk.invalid().len();
        valid.chain((invalid > 0).then_some((char::REPLACEMENT_CHARACTER, invalid)))
    })
}

/// Bytes at the end that begin a character and do not finish it.
#[must_use]
pub fn unfinished(bytes: &[u8]) -> usize {
    let following = bytes.iter().rev().take(3).take_while(|byte| continues(**byte)).count();
    let first = bytes.len().checked_sub(following + 1).map_or(0, |index| bytes[index]);
    if first.leading_ones() as usize > following + 1 { following + 1 } else { 0 }
}

/// Whether the byte lies inside a character of UTF-8.
fn continues(byte: u8) -> bool {
    byte.leading_ones() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::process::output::Writer;

    fn shown(kept_bytes_max: u64, output: &[u8], bytes_max: usize) -> Excerpt {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut writer = Writer::create(folder.path(), kept_bytes_max).expect("writable");
        writer.write(output);
        let excerpt_of = |ended| {
            let view = View::open(folder.path(), ended).expect("readable").expect("there");
            excerpt(&view, bytes_max).expect("readable")
        };
        let running = excerpt_of(None);
        let (extent, kept) = writer.finish();
        kept.expect("writable");
        assert_eq!(excerpt_of(Some(extent)), running);
        running
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(shown(100, b"abc", 3), Excerpt { text: "abc".to_owned(), bytes: 3, cut: false });
        assert_eq!(shown(8, "aaaäbbb".as_bytes(), 100).text, "aaaäbbb");
    }

    #[test]
    fn what_does_not_fit_is_cut_in_the_middle() {
        let output = (0..100).map(|number| format!("{number:02}")).collect::<String>();
        let shown = shown(1000, output.as_bytes(), NOTICE_BYTES_MAX + 8);
        assert_eq!(shown.text, "0001\n[192 bytes left out]\n9899");
        assert_eq!((shown.bytes, shown.cut), (200, true));
    }

    #[test]
    fn what_was_not_kept_is_said_even_if_the_rest_fits() {
        let shown = shown(8, b"abcdefghijkl", 100);
        assert_eq!(shown.text, "abcd\n[4 bytes left out]\nijkl");
        assert_eq!((shown.bytes, shown.cut), (12, true));
    }

    #[test]
    fn a_cut_never_breaks_a_character() {
        let shown = shown(1000, "äöü".repeat(50).as_bytes(), NOTICE_BYTES_MAX + 10);
        assert_eq!(shown.text, "äö\n[292 bytes left out]\nöü");
    }

    #[test]
    fn the_bound_holds_for_bytes_that_are_no_text() {
        let shown = shown(1000, &[0xff; 300], 300);
        assert!(shown.text.len() <= 300 && shown.cut, "{shown:?}");
    }
}
