//! Keys derived from one root key, which lies in a file that only its owner can read.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use annex_core::ports::{KeyUse, Keyring, SymmetricKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

/// The one key of the ring, until there is rotation. Its id is part of what its keys derive from.
const CURRENT: u32 = 1;

/// Characters of a root key's text.
const ROOT_CHARS: usize = 64;

/// Why there is no root key.
#[derive(Debug, thiserror::Error)]
pub enum RootKeyError {
    /// The text is no key.
    #[error("a root key has {ROOT_CHARS} hexadecimal characters")]
    Malformed,
    /// The file holds no key.
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

/// Keys derived from a root key with HKDF-SHA256 (RFC 5869), one for each use. `Debug` shows nothing.
pub struct RootKeyring {
    seal: SymmetricKey,
    token: SymmetricKey,
    api_key: SymmetricKey,
    operator: Zeroizing<String>,
    operator_hash: [u8; 32],
}

impl RootKeyring {
    /// The ring of a root key, given as 64 hexadecimal characters; white space around them is fine.
    pub fn from_hex(text: &str) -> Result<Self, RootKeyError> {
        let mut root = Zeroizing::new([0; ROOT_CHARS / 2]);
        hex::decode_to_slice(text.trim(), &mut root[..]).map_err(|_| RootKeyError::Malformed)?;
        Ok(Self::new(&root))
    }

    /// The ring of a root key. The operator signs in with the root key's text, in either case of its letters.
    pub fn new(root: &[u8; 32]) -> Self {
        let key = |name: &str| derive(root, CURRENT, name);
        let operator = Zeroizing::new(hex::encode(root));
        Self {
            seal: key("seal"),
            token: key("token"),
            api_key: key("api-key"),
            operator_hash: hash(&operator),
            operator,
        }
    }

    /// The ring of the root key in the file at `path`, which is made with a random key and mode 0600 where there is
    /// none. Its folder must be there. A file that others can read is refused.
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
        Self::from_hex(&text).map_err(|_| RootKeyError::MalformedFile(path.to_owned()))
    }

    /// The same ring with another sign-in secret for the operator than the root key.
    pub fn with_operator_secret(self, secret: &str) -> Self {
        let operator = Zeroizing::new(secret.to_owned());
        Self { operator_hash: hash(&operator), operator, ..self }
    }

    /// The operator's sign-in secret: for the command line on the same machine, which can read the root key.
    pub fn operator_secret(&self) -> Zeroizing<String> {
        self.operator.clone()
    }
}

fn derive(root: &[u8; 32], id: u32, name: &str) -> SymmetricKey {
    let id = id.to_be_bytes();
    let info: &[&[u8]] = &[b"annex/key/", &id, b"/", name.as_bytes()];
    let mut out = Zeroizing::new([0; 32]);
    Salt::new(HKDF_SHA256, b"annex")
        .extract(root)
        .expand(info, HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut out[..]))
        .expect("HKDF gives as many bytes as its hash has");
    out
}

/// The hash of an operator's secret. A text that could be a root key is the same in either case.
fn hash(secret: &str) -> [u8; 32] {
    let is_hex = secret.len() == ROOT_CHARS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut text = Zeroizing::new(secret.to_owned());
    if is_hex {
        text.make_ascii_lowercase();
    }
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
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
    let mut text = Zeroizing::new(String::with_capacity(2 * ROOT_CHARS));
    // A key file is short; nothing that is not one is read whole.
    match file.take(1024).read_to_string(&mut text) {
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
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let mut tag = [0; 8];
    aws_lc_rs::rand::fill(&mut tag).map_err(|_| io::Error::other("no random numbers"))?;
    let temporary = folder.join(format!(".root-key-{}", hex::encode(tag)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&temporary)?;
    let text = Zeroizing::new(format!("{}\n", &*Zeroizing::new(hex::encode(&random[..]))));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    // Unlike a rename, a link never replaces what is there.
    let linked = written.and_then(|()| std::fs::hard_link(&temporary, path));
    std::fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => std::fs::File::open(folder)?.sync_all(),
    }
}

impl Keyring for RootKeyring {
    fn current(&self) -> u32 {
        CURRENT
    }

    fn key(&self, id: u32, usage: KeyUse) -> Option<SymmetricKey> {
        let key = match usage {
            KeyUse::Seal => &self.seal,
            KeyUse::Token => &self.token,
            KeyUse::ApiKey => &self.api_key,
        };
        (id == CURRENT).then(|| key.clone())
    }

    fn is_operator(&self, secret: &str) -> bool {
        verify_slices_are_equal(&hash(secret), &self.operator_hash).is_ok()
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
    fn keys_are_the_same_for_a_root_and_different_for_each_use() {
        let keys = |ring: &RootKeyring| {
            [KeyUse::Seal, KeyUse::Token, KeyUse::ApiKey].map(|usage| ring.key(1, usage).unwrap())
        };
        let [seal, token, api_key] = keys(&ring());
        assert_eq!(keys(&ring()), [seal.clone(), token.clone(), api_key.clone()]);
        assert!(seal != token && token != api_key && seal != api_key);
        assert_ne!(keys(&RootKeyring::new(&[7; 32]))[0], seal);
        assert_ne!(derive(&[7; 32], 1, "seal"), derive(&[7; 32], 2, "seal"));
        assert_eq!((ring().key(0, KeyUse::Seal), ring().key(2, KeyUse::Seal)), (None, None));
    }

    #[test]
    fn a_derived_key_is_pinned_so_that_sealed_values_stay_readable() {
        let key = ring().key(1, KeyUse::Seal).unwrap();
        assert_eq!(hex::encode(&key[..]), PINNED);
    }

    /// From another implementation of RFC 5869.
    const PINNED: &str = "141cf40d0ac0b5653efb818ae93cb0fe85ddbfd08dc68bc448734c45efcf4b29";

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", ring()), "RootKeyring { .. }");
    }

    #[test]
    fn a_root_key_of_another_length_or_spelling_is_refused() {
        let refused = ["", &ROOT[1..], &format!("{ROOT}0"), &ROOT.replace("0f", "0g"), "é"];
        for text in refused {
            assert!(matches!(RootKeyring::from_hex(text), Err(RootKeyError::Malformed)), "{text}");
        }
        assert!(RootKeyring::from_hex(&format!(" {}\n", ROOT.to_uppercase())).is_ok());
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

    #[cfg(unix)]
    #[test]
    fn a_key_file_has_mode_0600_and_one_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root-key");
        RootKeyring::load_or_create(&path).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
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
        for bytes in [&b""[..], b"too short", &[0xff; 64], &[b'0'; 5000]] {
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
