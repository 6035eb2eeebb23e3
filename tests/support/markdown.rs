//! What the checks of pages need of Markdown: fenced blocks, links and headings.

/// A fenced block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What stands behind the opening fence: `sh`, `json`, or nothing.
    pub info: String,
    /// The line of its opening fence, counted from 1.
    pub line: usize,
    /// What stands between its fences.
    pub text: String,
}

/// The fenced blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let (info, line) = (info.trim().to_owned(), index + 1);
                open = Some(Block { info, line, text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    found.extend(open);
    found
}

/// The lines of a page that are not in a fenced block, with their numbers from 1.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// Where the links of a page lead, with their lines. What stands between backquotes is no link.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(page) {
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for after in text.split("](").skip(1) {
            if let Some((to, _)) = after.split_once(')') {
                found.push((number, to.to_owned()));
            }
        }
    }
    found
}

/// The names under which the headings of a page can be linked to.
pub fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter(|(_, line)| line.starts_with('#'));
    let name = |(_, line): (usize, &str)| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# The page, one\n[a](b.md#c) `[no](link)` [d](e)\n```sh\n[x](y)\n```\n## 2\n```\nz\n";

    #[test]
    fn blocks_links_and_headings_are_found() {
        let block =
            |info: &str, line, text: &str| Block { info: info.into(), line, text: text.into() };
        assert_eq!(blocks(PAGE), [block("sh", 3, "[x](y)\n"), block("", 7, "z\n")]);
        assert_eq!(links(PAGE), [(2, "b.md#c".to_owned()), (2, "e".to_owned())]);
        assert_eq!(anchors(PAGE), ["the-page-one", "2"]);
    }
}
