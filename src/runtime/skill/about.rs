//! What a SKILL.md says of itself: `name` and `description`, between two lines of dashes at its beginning.

use super::FILE;
use crate::runtime::effect::guidance;
use crate::runtime::root::{FileError, Root};
use crate::words::content::excerpt;
use crate::words::id::SkillName;
use crate::words::limit::SKILL_DESCRIPTION_BYTES_MAX;
use std::path::Path;

/// What the skill in a folder is for, or why it is none of that name.
pub(super) fn read(folder: &Root, name: &SkillName) -> Result<String, String> {
    match guidance::text(folder, Path::new(FILE)) {
        Ok(Some(text)) => description(&text, name),
        Ok(None) | Err(FileError::Missing) => Err(unread()),
        Err(error) => Err(format!("has a {FILE} that {error}")),
    }
}

pub(super) fn unread() -> String {
    format!("has no {FILE} that can be read")
}

/// What a SKILL.md says the skill is for, on one line.
pub(super) fn description(text: &str, name: &SkillName) -> Result<String, String> {
    let front = front_matter(text).ok_or_else(|| format!("has a {FILE} that does not begin with front matter"))?;
    let found = |key: &str| front.iter().find(|(known, _)| *known == key).map(|(_, value)| unquoted(value));
    match found("name") {
        Some(said) if said == name.as_str() => {}
        Some(said) => return Err(format!("has a {FILE} of another skill: {}", excerpt(said, 64))),
        None => return Err(format!("has a {FILE} without a name")),
    }
    match found("description") {
        Some(said) if !said.is_empty() => Ok(excerpt(said, SKILL_DESCRIPTION_BYTES_MAX).to_owned()),
        Some(_) | None => Err(format!("has a {FILE} without a description")),
    }
}

/// Keys and values. What is indented goes on with the value before it.
fn front_matter(text: &str) -> Option<Vec<(&str, String)>> {
    let mut lines = text.lines().map(str::trim_end);
    lines.next().filter(|line| *line == "---")?;
    let mut front: Vec<(&str, String)> = Vec::new();
    for line in lines {
        if line == "---" {
            return Some(front);
        }
        match (line.starts_with([' ', '\t']), front.last_mut()) {
            (true, Some((_, value))) => {
                let gap = if value.is_empty() { "" } else { " " };
                value.extend([gap, line.trim()]);
            }
            (true, None) => {}
            (false, _) => front.extend(line.split_once(':').map(|(key, value)| (key, begun(value)))),
        }
    }
    None
}

/// The value on the line of its key: nothing yet where marks say that it follows.
fn begun(value: &str) -> String {
    let value = value.trim();
    if matches!(value, ">" | ">-" | ">+" | "|" | "|-" | "|+") { String::new() } else { value.to_owned() }
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<String, String> {
        description(text, &"mend".parse().unwrap())
    }

    #[test]
    fn a_description_is_one_line_however_it_is_written() {
        for text in [
            "---\nname: mend\ndescription: mends what broke\n---\n# Mend\n",
            "---\r\nname: 'mend'\r\ndescription: \"mends what broke\"\r\n---\r\n",
            "---\nlicense: MIT\nname: mend\ndescription: >-\n  mends\n  what broke\nmetadata:\n  name: other\n---\n",
            "---\ndescription: mends\n   what broke\nname: mend\n---",
        ] {
            assert_eq!(told(text).as_deref(), Ok("mends what broke"), "{text}");
        }
        let long = "é".repeat(SKILL_DESCRIPTION_BYTES_MAX);
        let cut = told(&format!("---\nname: mend\ndescription: {long}\n---")).unwrap();
        assert_eq!(cut.len(), SKILL_DESCRIPTION_BYTES_MAX);
    }

    #[test]
    fn what_says_less_is_no_skill() {
        for (text, reason) in [
            ("", "front matter"),
            ("# Mend\n---\nname: mend\n---", "front matter"),
            ("---\nname: mend\ndescription: never closed\n", "front matter"),
            ("---\ndescription: nameless\n---", "without a name"),
            ("---\nname: other\ndescription: another\n---", "of another skill: other"),
            ("---\nname: mend\n---", "without a description"),
            ("---\nname: mend\ndescription: >\n---", "without a description"),
        ] {
            assert!(told(text).unwrap_err().contains(reason), "{text}");
        }
    }
}
