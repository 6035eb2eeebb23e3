//! The files of the repository.

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package is a folder of the repository")
        .to_owned()
}

/// A file of the repository.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// Its text; what is no UTF-8 is replaced.
    pub text: String,
}

/// Every file of text that belongs to the repository: not what is built, and nothing hidden but `.ci`.
pub fn files() -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("a folder of the repository can be read");
        for entry in entries.filter_map(Result::ok) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let hidden = name.starts_with('.') && name != ".ci";
            if hidden || matches!(&*name, "target" | "node_modules" | "__pycache__" | "venv") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.is_file() {
                let text = std::fs::read(&path).expect("a file of the repository can be read");
                let path = path.strip_prefix(&root).expect("it was found below the root");
                let path = path.to_string_lossy().replace('\\', "/");
                found.push(File { path, text: String::from_utf8_lossy(&text).into_owned() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
