//! The text: references to numbers, tables and figures are put in; a number that was typed is
//! refused.

use bed::{BedError, Result};

use crate::paper::analysis::Numbers;

/// No line of a page is longer, except in tables.
const COLUMNS: usize = 120;

/// Puts in what `{{…}}` names: `{{key}}` a number, `{{table NAME | words}}` a table,
/// `{{figure NAME | words}}` a picture, both with the words as a caption. Where a line becomes too
/// long, the rest of its paragraph is broken anew.
pub fn filled(template: &str, numbers: &Numbers, tables: &[(String, String)], figures: &[String]) -> Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").ok_or_else(|| wrong("a reference has no end", after))?;
        text.push_str(before);
        text.push_str(&one(name.trim(), numbers, tables, figures)?);
        rest = behind;
    }
    text.push_str(rest);
    Ok(broken(&text))
}

/// A text in which paragraphs and items of lists with a line that is too long are broken anew.
fn broken(text: &str) -> String {
    let is_prose = |line: &str| !line.trim().is_empty() && !line.starts_with(['|', '!', '#', '`']);
    let mut lines = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        let goes_on = is_prose(line) && !line.starts_with("- ") && block.last().is_some_and(|last| is_prose(last));
        if !goes_on {
            wrap(&mut lines, &std::mem::take(&mut block));
        }
        block.push(line);
    }
    wrap(&mut lines, &block);
    lines.join("\n")
}

/// The lines of a block, as they are if they fit or are no prose.
fn wrap(lines: &mut Vec<String>, block: &[&str]) {
    let is_long = block.iter().any(|line| line.chars().count() > COLUMNS);
    if !is_long || block.first().is_some_and(|line| line.starts_with(['|', '!', '#'])) {
        lines.extend(block.iter().map(|line| (*line).to_owned()));
        return;
    }
    let indent = if block.first().is_some_and(|line| line.starts_with("- ")) { "  " } else { "" };
    let mut last = String::new();
    for word in block.iter().flat_map(|line| line.split_whitespace()) {
        if last.is_empty() {
            word.clone_into(&mut last);
        } else if last.chars().count() + 1 + word.chars().count() <= COLUMNS {
            last = format!("{last} {word}");
        } else {
            lines.push(std::mem::replace(&mut last, format!("{indent}{word}")));
        }
    }
    lines.push(last);
}

fn one(name: &str, numbers: &Numbers, tables: &[(String, String)], figures: &[String]) -> Result<String> {
    if let Some(words) = name.strip_prefix("table ") {
        let (name, caption) = words.split_once('|').unwrap_or((words, ""));
        let table = tables.iter().find(|(known, _)| known == name.trim());
        let text = table.map(|(_, text)| text.trim_end()).ok_or_else(|| wrong("no such table", name))?;
        let caption = caption.split_whitespace().collect::<Vec<_>>().join(" ");
        return Ok(if caption.is_empty() { text.to_owned() } else { format!("{text}\n\nTable: {caption}") });
    }
    if let Some(words) = name.strip_prefix("figure ") {
        let (name, caption) = words.split_once('|').unwrap_or((words, ""));
        let file = format!("{}.svg", name.trim());
        let known = figures.contains(&file);
        let caption = caption.split_whitespace().collect::<Vec<_>>().join(" ");
        return if known { Ok(format!("![{caption}]({file})")) } else { Err(wrong("no such figure", name)) };
    }
    numbers.get(name).cloned().ok_or_else(|| wrong("no such number", name))
}

fn wrong(problem: &str, what: &str) -> BedError {
    let what: String = what.chars().take(60).collect();
    BedError::Usage(format!("{problem}: {what}"))
}

/// The lines with numbers that nobody can trace, with these numbers: not in code, in a reference,
/// in a link's address, nor a constant of the plan.
pub fn bare_numbers(template: &str, constants: &[String]) -> Vec<String> {
    let mut constants: Vec<&str> = constants.iter().map(String::as_str).collect();
    // Longer ones first: one may be a part of another.
    constants.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
    let mut found = Vec::new();
    let mut in_code = false;
    for (at, line) in (1..).zip(template.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let mut plain = without(&without(&without(line, "{{", "}}"), "`", "`"), "](", ")");
        for phrase in &constants {
            plain = without_phrase(&plain, phrase);
        }
        let words = plain.split_whitespace().filter(|word| word.contains(|one: char| one.is_ascii_digit()));
        found.extend(words.map(|word| format!("line {at}: {word}")));
    }
    found
}

/// A line without what stands between two marks.
fn without(line: &str, begin: &str, end: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(begin) {
        let Some((_, behind)) = after.split_once(end) else { break };
        kept.push_str(before);
        kept.push(' ');
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

/// A line without a phrase where it stands as words of its own.
fn without_phrase(line: &str, phrase: &str) -> String {
    let is_part = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric() || one == '_');
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(phrase) {
        let last = before.chars().next_back().or_else(|| kept.chars().next_back());
        let decimals =
            after.strip_prefix(['.', ',']).is_some_and(|more| more.starts_with(|one: char| one.is_ascii_digit()));
        let is_alone = !is_part(last) && last != Some('.') && !is_part(after.chars().next()) && !decimals;
        kept.push_str(before);
        kept.push_str(if is_alone { " " } else { phrase });
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_put_in_and_unknown_ones_are_refused() {
        let numbers = Numbers::from([("nine.n".to_owned(), "40".to_owned())]);
        let tables = [("t".to_owned(), "| a |\n".to_owned())];
        let fill = |text: &str| filled(text, &numbers, &tables, &["f.svg".to_owned()]);
        assert_eq!(
            fill("n = {{nine.n}}.\n{{table t}}\n{{table t | What\nit is}}\n{{figure f | Words\nof it}}").unwrap(),
            "n = 40.\n| a |\n| a |\n\nTable: What it is\n![Words of it](f.svg)"
        );
        for unknown in ["{{nine.m}}", "{{table u}}", "{{figure g}}", "{{nine.n"] {
            assert!(fill(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_paragraph_with_a_line_that_became_too_long_is_broken_anew() {
        let fill = |text: &str| filled(text, &Numbers::new(), &[], &[]).unwrap();
        let long = "word ".repeat(40).trim_end().to_owned();
        let text = fill(&format!("- {long}\n  end\n- next\n\n{long}\nend\n\nkept\nas it is\n| {long} |\n"));
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= COLUMNS || line.starts_with('|')), "{text}");
        assert!(lines[1].starts_with("  word") && lines[1].ends_with("word end"), "{text}");
        assert_eq!(lines[2..4], ["- next", ""]);
        assert!(lines[5].ends_with("word end") && lines[6].is_empty(), "{text}");
        assert_eq!(lines[7..9], ["kept", "as it is"]);
        assert_eq!(text.split_whitespace().count(), 131);
    }

    #[test]
    fn a_typed_number_is_found_and_a_constant_is_not() {
        let constants = ["Debian 13".to_owned(), "15.0.3".to_owned(), "1".to_owned()];
        let found = |text: &str| bare_numbers(text, &constants).len();
        assert_eq!(found("It takes 0.31 of the time."), 1);
        assert_eq!(found("bacula-fd 15.0.3 of Debian 13, `-n 40`, {{nine.n}}, [x](a/40.md)"), 0);
        assert_eq!(found("below 1, not 1.5 nor 0.1 nor 21"), 3);
        assert_eq!(found("```\n40\n```\n40"), 1);
        assert_eq!(found("15.0.31"), 1);
    }
}
