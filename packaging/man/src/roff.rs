//! Markdown as a manual page, in the macros of man(7).
//!
//! A heading of the second level is a section. Of a table, the first column is a list of terms; the
//! last one explains them, and the head of each column in between stands before its text. Of a link
//! the text is kept, or, if it is the name of a page of the manual, its installed path.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Where the packages install the pages of the manual.
const INSTALLED: &str = "/usr/share/doc/ferrofd/";

/// What stands around a page.
pub(crate) struct Head<'a> {
    pub(crate) name: &'a str,
    pub(crate) section: u8,
    /// For a source without the sections Name and Description.
    pub(crate) purpose: Option<&'a str>,
    pub(crate) version: &'a str,
    pub(crate) date: &'a str,
}

/// Makes the page of a Markdown text.
///
/// # Errors
///
/// The text has something that no rule here is about, such as an image.
pub(crate) fn page(head: &Head<'_>, markdown: &str) -> Result<String, String> {
    let Head { name, section, version, date, .. } = head;
    let out = format!(".TH {} {section} {date} \"ferrofd {version}\"\n", name.to_uppercase());
    let mut page = Page { out, ..Page::default() };
    if let Some(purpose) = head.purpose {
        page.macro_line(&format!(".SH NAME\n{name} \\- {}\n.SH DESCRIPTION", escaped(purpose)));
        page.fresh = true;
    }
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_DEFINITION_LIST) {
        page.event(event)?;
    }
    if head.purpose.is_some() {
        page.out += ".SH SEE ALSO\n\\fBbacula\\-fd.conf\\fR(5), \\fBbacula\\-fd\\fR(8)\n";
    }
    Ok(page.out)
}

#[derive(Default)]
struct Page {
    out: String,
    /// The text of the current paragraph, heading, term or cell.
    text: String,
    /// The next paragraph needs no macro before it: it follows a heading or a term.
    fresh: bool,
    code: bool,
    /// The section is Name, whose dash is a minus with blanks.
    naming: bool,
    /// Where the current link leads, and where its text begins.
    link: Option<(String, usize)>,
    columns: Vec<String>,
    row: Vec<String>,
}

impl Page {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(tag) => return self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code => self.out += &lines(&escaped(&text)),
            Event::Text(text) => self.text += &escaped(&text),
            Event::Code(text) => self.text.extend(["\\fB", &escaped(&text), "\\fR"]),
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            other => return Err(format!("no rule for {other:?}")),
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'_>) -> Result<(), String> {
        match tag {
            Tag::Paragraph if !self.fresh => self.macro_line(".PP"),
            Tag::Strong if !self.naming => self.text += "\\fB",
            Tag::Emphasis => self.text += "\\fI",
            Tag::Link { dest_url, .. } => self.link = Some((page_name(&dest_url), self.text.len())),
            Tag::CodeBlock(_) => {
                self.macro_line(".PP\n.RS 4\n.nf");
                self.code = true;
            }
            Tag::Item => {
                self.flush();
                self.macro_line(".IP \\(bu 2");
                self.fresh = true;
            }
            Tag::DefinitionListTitle => self.macro_line(".TP"),
            Tag::Table(_) => self.columns.clear(),
            Tag::TableHead | Tag::TableRow => self.row.clear(),
            Tag::Paragraph
            | Tag::Strong
            | Tag::Heading { .. }
            | Tag::List(_)
            | Tag::DefinitionList
            | Tag::DefinitionListDefinition
            | Tag::TableCell => {}
            other => return Err(format!("no rule for {other:?}")),
        }
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong if !self.naming => self.text += "\\fR",
            TagEnd::Emphasis => self.text += "\\fR",
            TagEnd::Link => self.end_link(),
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::Paragraph | TagEnd::Item | TagEnd::DefinitionListDefinition => {
                self.flush();
                self.fresh = false;
            }
            TagEnd::DefinitionListTitle => {
                let term = std::mem::take(&mut self.text);
                self.macro_line(&line(&term));
                self.fresh = true;
            }
            TagEnd::CodeBlock => {
                self.out += ".fi\n.RE\n";
                self.code = false;
                self.fresh = false;
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.text)),
            TagEnd::TableHead => self.columns = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.table_row(),
            _ => {}
        }
    }

    fn heading(&mut self, level: HeadingLevel) {
        let text = std::mem::take(&mut self.text);
        // The page has it in its first line.
        if level == HeadingLevel::H1 {
            return;
        }
        self.naming = text == "Name";
        let name = if level <= HeadingLevel::H2 { text.to_uppercase() } else { text };
        self.macro_line(&format!("{} {name}", if level <= HeadingLevel::H2 { ".SH" } else { ".SS" }));
        self.fresh = true;
    }

    /// `name(8)` is bold up to the parenthesis; the name of a page becomes its path.
    fn end_link(&mut self) {
        let Some((target, from)) = self.link.take() else { return };
        let text = self.text.split_off(from.min(self.text.len()));
        let shown = if text == escaped(&target) {
            format!("\\fI{}\\fR", escaped(&format!("{INSTALLED}{target}")))
        } else if let Some((name, section)) = text.split_once('(').filter(|(name, _)| !name.contains(' ')) {
            format!("\\fB{name}\\fR({section}")
        } else {
            text
        };
        self.text += &shown;
    }

    fn table_row(&mut self) {
        let mut cells = std::mem::take(&mut self.row).into_iter();
        let term = cells.next().unwrap_or_default();
        let mut cells: Vec<String> = cells.collect();
        let explained = cells.pop().unwrap_or_default();
        self.macro_line(&format!(".TP\n{}", line(&term)));
        self.out += &filled(&format!("{}.", capital(&explained)));
        for (head, cell) in self.columns.iter().skip(1).zip(&cells) {
            self.out += &filled(&format!("{}: {}.", capital(head), cell));
        }
        self.fresh = false;
    }

    /// Writes the text that has gathered.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.out += &filled(&text);
        }
    }

    fn macro_line(&mut self, text: &str) {
        self.out += text;
        self.out.push('\n');
    }
}

/// The file that a link leads to, without its directory.
fn page_name(target: &CowStr<'_>) -> String {
    let file = target.split('#').next().unwrap_or_default();
    file.rsplit('/').next().unwrap_or_default().to_owned()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

/// Characters that roff would read as something else; what is not ASCII by its number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => out += "\\e",
            '-' => out += "\\-",
            '\'' => out += "\\(aq",
            '`' => out += "\\(ga",
            '^' => out += "\\(ha",
            '~' => out += "\\(ti",
            letter if letter.is_ascii() => out.push(letter),
            letter => out.extend(["\\[u".to_owned(), format!("{:04X}", u32::from(letter)), "]".to_owned()]),
        }
    }
    out
}

/// A line of text must not begin like a macro.
fn line(text: &str) -> String {
    if text.starts_with('.') { format!("\\&{text}") } else { text.to_owned() }
}

/// Words in lines that are short enough for `mandoc -T lint`.
fn filled(text: &str) -> String {
    const COLUMNS: usize = 80;
    let (mut out, mut current) = (String::new(), String::new());
    for word in text.split_ascii_whitespace() {
        if !current.is_empty() && current.len() + 1 + word.len() > COLUMNS {
            out += &line(&current);
            out.push('\n');
            current.clear();
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current += word;
    }
    out + &line(&current) + "\n"
}

fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(purpose: Option<&str>, markdown: &str) -> String {
        let head = Head { name: "a", section: 8, purpose, version: "1", date: "2000-01-01" };
        page(&head, markdown).unwrap()
    }

    #[test]
    fn terms_and_links_become_what_a_manual_page_has() {
        let text = "# a(8)\n\n## Name\n\n**a** - b\n\n## See also\n\n**-c** *file*\n: see [b(5)](b.5.md),\n  \
                    [c.md](../c.md#d) and [more](e.md).\n";
        let expected = ".TH A 8 2000-01-01 \"ferrofd 1\"\n.SH NAME\na \\- b\n.SH SEE ALSO\n.TP\n\\fB\\-c\\fR \\fIfile\\fR\n\
                        see \\fBb\\fR(5), \\fI/usr/share/doc/ferrofd/c.md\\fR and more.\n";
        assert_eq!(made(None, text), expected);
    }

    #[test]
    fn a_table_becomes_terms_with_its_heads_before_the_values() {
        let text = "# a\n\nIntro.\n\n| key | values | what it does |\n| --- | --- | --- |\n| `x` | 1 to 2 | counts |\n";
        let expected = ".TH A 8 2000-01-01 \"ferrofd 1\"\n.SH NAME\na \\- p\n.SH DESCRIPTION\nIntro.\n.TP\n\\fBx\\fR\nCounts.\n\
                        Values: 1 to 2.\n.SH SEE ALSO\n\\fBbacula\\-fd.conf\\fR(5), \\fBbacula\\-fd\\fR(8)\n";
        assert_eq!(made(Some("p"), text), expected);
    }

    #[test]
    fn nothing_of_a_text_is_taken_for_a_macro_and_what_has_no_rule_is_refused() {
        let head = Head { name: "a", section: 8, purpose: None, version: "1", date: "2000-01-01" };
        assert!(made(None, "## B\n\n```\n.PP \\x\n'y\n```\n").contains(".nf\n\\&.PP \\ex\n\\(aqy\n.fi"));
        assert!(page(&head, "![picture](p.png)").is_err(), "an image has no place in a manual page");
    }
}
