//! Dates in messages, listings and names of jobs.

/// The text with `DATE` for each date: all recordings may be of one day, so that a date is not seen
/// to be chance.
pub fn undated(text: &str) -> String {
    const FORMS: [&str; 5] =
        ["0000-00-00_00.00.00_00", "0000-00-00 00:00:00", "00-Aaa-0000 00:00:00", "00-Aaa-00 00:00", "00-Aaa 00:00"];
    let fits = |rest: &[char], form: &str| {
        rest.len() >= form.len()
            && form.chars().zip(rest).all(|(wanted, found)| match wanted {
                '0' => found.is_ascii_digit(),
                'A' => found.is_ascii_uppercase(),
                'a' => found.is_ascii_lowercase(),
                other => other == *found,
            })
    };
    let all: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(rest) = all.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(form) = FORMS.iter().find(|form| fits(rest, form)) {
            out.push_str("DATE");
            at += form.len();
        } else {
            out.extend(rest.first());
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_each_form_are_left_out_and_nothing_else() {
        let text =
            "25-Nov 16:52 backup.2026-11-25_16.52.01_07 at 2026-11-25 16:52:21, 25-Nov-2026 16:52:21, 25-Nov-26 16:52";
        assert_eq!(undated(text), "DATE backup.DATE at DATE, DATE, DATE");
        assert_eq!(undated("10 files, 3-4 of 2026"), "10 files, 3-4 of 2026");
    }
}
