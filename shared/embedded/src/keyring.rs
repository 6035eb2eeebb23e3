//! The key ring of one machine: root keys in a file that only its owner can read.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use annex_core::keyring::{ROOT_CHARS, RingFault, RootKeys, operator_hash};
use annex_core::limits::RING_BYTES_MAX;
use annex_core::ports::{KeyUse, Keyring, SymmetricKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroizing;

/// Why there is no key ring.
#[derive(Debug, thiserror::Error)]
pub enum RootKeyError {
    /// The text is no ring.
    #[error(transparent)]
    Malformed(#[from] RingFault),
    /// The file holds no ring.
    #[error("{} is no root key: it must hold {ROOT_CHARS} hexadecimal characters", .0.display())]
    MalformedFile(PathBuf),
    /// Others than its owner could read it.
    #[error("{} can be read by others: set its mode to 0600 (chmod 600)", .0.display())]
    Exposed(PathBuf),
    /// The file cannot be had.
    #[error("{} cannot be used: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The [`RootKeys`] of a file, which can be replaced while it is in use. `Debug` shows nothing.
pub struct RootKeyring {
    keys: RwLock<RootKeys>,
    operator: Option<Chosen>,
    file: Option<PathBuf>,
}

/// A sign-in secret of the operator that is not a root key.
struct Chosen {
    secret: Zeroizing<String>,
    hash: [u8; 32],
}

impl RootKeyring {
    /// The ring of a text: one root key of 64 hexadecimal characters, or the JSON of [`annex_core::keyring`].
    pub fn from_hex(text: &str) -> Result<Self, RootKeyError> {
        Ok(RootKeys::parse(text)?.into())
    }

    /// The ring of one root key. The operator signs in with a root key's text, in either case of its letters.
    pub fn new(root: &[u8; 32]) -> Self {
        RootKeys::single(root).into()
    }

    /// The ring in the file at `path`, which is made with a random key and mode 0600 where there is none. Its folder
    /// must be there. A file that others can read is refused.
    pub fn load_or_create(path: &Path) -> Result<Self, RootKeyError> {
        let failed = |source| RootKeyError::File { path: path.to_owned(), source };
        let text = match read(path) {
            Err(RootKeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                create(path).map_err(failed)?;
                // Another process may have been faster; its key counts then.
                read(path)?
            }
            read => read?,
        };
        let keys =
            RootKeys::parse(&text).map_err(|_| RootKeyError::MalformedFile(path.to_owned()))?;
        Ok(Self { file: Some(path.to_owned()), ..keys.into() })
    }

    /// The file that it was read from.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Uses other keys from now on.
    pub fn replace(&self, keys: RootKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn keys(&self) -> RwLockReadGuard<'_, RootKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same ring with another sign-in secret for the operator than the root keys.
    pub fn with_operator_secret(self, secret: &str) -> Self {
        let secret = Zeroizing::new(secret.to_owned());
        Self { operator: Some(Chosen { hash: operator_hash(&secret), secret }), ..self }
    }

    /// The operator's sign-in secret: for the command line on the same machine, which can read the root key.
    pub fn operator_secret(&self) -> Zeroizing<String> {
        match &self.operator {
            Some(chosen) => chosen.secret.clone(),
            None => {
                let keys = self.keys();
                keys.root_text(keys.current()).expect("a ring has its current key")
            }
        }
    }
}

impl From<RootKeys> for RootKeyring {
    fn from(keys: RootKeys) -> Self {
        Self { keys: RwLock::new(keys), operator: None, file: None }
    }
}

/// The ring in the file at `path`. A file that others can read is refused.
pub fn read_ring(path: &Path) -> Result<RootKeys, RootKeyError> {
    RootKeys::parse(&read(path)?).map_err(|_| RootKeyError::MalformedFile(path.to_owned()))
}

/// Changes the ring in the file at `path`: the file is replaced whole or stays as it is, also where the machine stops in
/// the middle, and of two changes at a time one waits for the other. Answers the new ring.
pub fn change_ring(
    path: &Path,
    change: impl FnOnce(&RootKeys) -> Result<RootKeys, RingFault>,
) -> Result<RootKeys, RootKeyError> {
    let failed = |source| RootKeyError::File { path: path.to_owned(), source };
    let folder = folder_of(path);
    let lock = std::fs::File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let keys = change(&read_ring(path)?)?;
    let text = Zeroizing::new(format!("{}\n", &*keys.text()));
    let temporary = write_beside(path, &text).map_err(failed)?;
    let renamed = std::fs::rename(&temporary, path);
    if renamed.is_err() {
        // It holds keys. That it cannot be removed is the smaller of two troubles.
        let _ = std::fs::remove_file(&temporary);
    }
    renamed.and_then(|()| lock.sync_all()).map_err(failed)?;
    Ok(keys)
}

fn read(path: &Path) -> Result<Zeroizing<String>, RootKeyError> {
    let failed = |source| RootKeyError::File { path: path.to_owned(), source };
    let file = OpenOptions::new().read(true).open(path).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(RootKeyError::Exposed(path.to_owned()));
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(RING_BYTES_MAX));
    // Nothing that is too large to be a ring is read whole; one byte more shows that it is.
    match file.take(RING_BYTES_MAX as u64 + 1).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(RootKeyError::MalformedFile(path.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Makes a key file whole or not at all, and leaves one alone that is there already.
fn create(path: &Path) -> io::Result<()> {
    let mut random = Zeroizing::new([0; ROOT_CHARS / 2]);
    aws_lc_rs::rand::fill(&mut random[..]).map_err(|_| io::Error::other("no random numbers"))?;
    let text = Zeroizing::new(format!("{}\n", &*Zeroizing::new(hex::encode(&random[..]))));
    let temporary = write_beside(path, &text)?;
    // Unlike a rename, a link never replaces what is there.
    let linked = std::fs::hard_link(&temporary, path);
    std::fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => std::fs::File::open(folder_of(path))?.sync_all(),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Writes a new file with mode 0600 into the folder of `path`, down to the disk; answers where.
fn write_beside(path: &Path, text: &str) -> io::Result<PathBuf> {
    let mut tag = [0; 8];
    aws_lc_rs::rand::fill(&mut tag).map_err(|_| io::Error::other("no random numbers"))?;
    let temporary = folder_of(path).join(format!(".root-key-{}", hex::encode(tag)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&temporary)?;
    match file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(temporary),
        Err(error) => {
            std::fs::remove_file(&temporary)?;
            Err(error)
        }
    }
}

impl Keyring for RootKeyring {
    fn current(&self) -> u32 {
        self.keys().current()
    }

    fn key_ids(&self) -> Vec<u32> {
        self.keys().key_ids()
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        self.keys().key(id, usage)
    }

    fn is_operator(&self, secret: &str) -> bool {
        match &self.operator {
            Some(chosen) => verify_slices_are_equal(&operator_hash(secret), &chosen.hash).is_ok(),
            None => self.keys().is_operator(secret),
        }
    }
}

impl fmt::Debug for RootKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootKeyring").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn ring() -> RootKeyring {
        RootKeyring::from_hex(ROOT).unwrap()
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", ring()), "RootKeyring { .. }");
    }

    #[test]
    fn the_operator_is_known_by_one_secret() {
        assert_eq!(ring().operator_secret().as_str(), ROOT);
        assert!(ring().is_operator(ROOT));
        let upper = ROOT.to_uppercase();
        assert!(RootKeyring::from_hex(&upper).unwrap().is_operator(ROOT));
        assert!(ring().is_operator(&upper));
        for other in ["", &ROOT[1..], &format!("{ROOT}x")] {
            assert!(!ring().is_operator(other));
        }
        let chosen = ring().with_operator_secret("chosen");
        assert!(chosen.is_operator("chosen") && !chosen.is_operator(ROOT));
    }

    #[test]
    fn a_key_file_is_made_once_and_then_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        let made = RootKeyring::load_or_create(&path).unwrap();
        let read = RootKeyring::load_or_create(&path).unwrap();
        assert_eq!(made.operator_secret(), read.operator_secret());
        assert_eq!(std::fs::read_to_string(&path).unwrap().len(), ROOT_CHARS + 1);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn of_many_starts_at_a_time_all_have_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        let start = || RootKeyring::load_or_create(&path).unwrap().operator_secret();
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn a_ring_in_a_file_is_changed_whole_and_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        let made = RootKeyring::load_or_create(&path).unwrap();
        assert_eq!(made.file(), Some(&*path));
        let add = |n| change_ring(&path, |ring| ring.added(&[n; 32]).map(|(ring, _)| ring));
        std::thread::scope(|scope| {
            let adds: Vec<_> = (0..8).map(|n| scope.spawn(move || add(n))).collect();
            adds.into_iter().for_each(|add| assert!(add.join().unwrap().is_ok()));
        });
        assert_eq!(read_ring(&path).unwrap().key_ids(), (1..=9).collect::<Vec<_>>());
        let before = std::fs::read(&path).unwrap();
        assert!(change_ring(&path, |ring| ring.promoted(10)).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let promoted = change_ring(&path, |ring| ring.promoted(9)).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(made.current(), 1);
        made.replace(promoted);
        assert_eq!((made.current(), made.key_ids().len()), (9, 9));
        assert_eq!(RootKeyring::load_or_create(&path).unwrap().current(), 9);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_has_mode_0600_and_one_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        RootKeyring::load_or_create(&path).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        change_ring(&path, |ring| ring.promoted(1)).unwrap();
        assert_eq!(mode(), 0o600);
        for (mode, refused) in [(0o400, false), (0o640, true), (0o604, true), (0o610, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let is_refused =
                matches!(RootKeyring::load_or_create(&path), Err(RootKeyError::Exposed(_)));
            assert_eq!(is_refused, refused, "{mode:o}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_holds_no_key_is_named_and_left_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        for bytes in [&b""[..], b"too short", &[0xff; 64], &[b'0'; 70_000]] {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let failed = RootKeyring::load_or_create(&path).unwrap_err().to_string();
            assert_eq!(
                failed,
                format!(
                    "{} is no root key: it must hold 64 hexadecimal characters",
                    path.display()
                )
            );
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
