//! What can be typed.

use clap::{Parser, Subcommand, ValueEnum};

use super::output::Format;
use super::{
    config, dead_letters, event, extension, filed, invocation, key, keyring, lock, lock_session,
    org, request, rule, secret, subscription, usage, vendor,
};
use crate::serve::ServeOptions;

const ENVIRONMENT: &str = "\
Environment:
  ANNEX_URL       where the platform is [http://127.0.0.1:8080]
  ANNEX_OID       the organization that commands are about
  ANNEX_API_KEY   a key of the organization
  ANNEX_ROOT_KEY  the operator's key, used where ANNEX_API_KEY is not set; `annex serve` keeps it in
                  the file root-key of its data folder

Exit codes:
  0  done
  1  the platform refused, or the call failed; `error: text (code)` stands on standard error
  2  the command line does not make sense
  3  the platform could not be reached

Examples:
  annex serve --data annex-data
  export ANNEX_ROOT_KEY=$(cat annex-data/root-key)
  annex org create demo
  annex extension register scanner --url https://scanner.example.com/ --secret-file secret.txt
  annex subscribe scanner
  annex request scanner scan --data '{\"target\": \"example.com\"}'";

/// An extension platform: signed, retried, metered calls to extensions of your product
#[derive(Debug, Parser)]
#[command(name = "annex", version, after_help = ENVIRONMENT, arg_required_else_help = true)]
pub struct Cli {
    /// Where the platform is
    #[arg(
        id = "annex-url",
        long,
        global = true,
        env = "ANNEX_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        hide_env = true
    )]
    pub url: String,
    /// The organization that the command is about
    #[arg(long, global = true, env = "ANNEX_OID", value_name = "OID", hide_env = true)]
    pub oid: Option<String>,
    /// How answers are shown
    #[arg(long, global = true, value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: Format,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the platform on this machine
    #[command(after_help = "\
Examples:
  annex serve
  annex serve --listen 127.0.0.1:9000 --data /var/lib/annex --log json
  annex serve --allow-private-networks     # extensions on this machine or in a private network")]
    Serve(ServeOptions),
    /// Ask whether the platform is up
    Health,
    /// Organizations: create, list, show, export, delete
    #[command(subcommand)]
    Org(org::Command),
    /// API keys of an organization: create, list, delete
    #[command(subcommand)]
    Key(key::Command),
    /// Extensions: register, update, rotate-secret, token, list, show, schema, diagnose, delete
    #[command(subcommand)]
    Extension(extension::Command),
    /// What an organization uses: list, create, delete, rekey
    #[command(subcommand)]
    Subscription(subscription::Command),
    /// Short for `subscription create`
    Subscribe {
        /// Name of the extension
        extension: String,
    },
    /// Short for `subscription delete`
    Unsubscribe {
        /// Name of the extension
        extension: String,
    },
    /// Configurations of extensions: get, set, list, validate, delete
    #[command(subcommand)]
    Config(config::Command),
    /// Call an action of an extension
    Request(request::Options),
    /// Calls that were made: show, replay
    #[command(subcommand)]
    Invocation(invocation::Command),
    /// What failed in an organization: list, dismiss
    #[command(subcommand)]
    Error(filed::Command),
    /// What was metered
    Usage(usage::Options),
    /// Secrets that configurations and calls refer to: list, get, set, delete
    #[command(subcommand)]
    Secret(secret::Command),
    /// Telemetry events: list
    #[command(subcommand)]
    Event(event::Command),
    /// Rules that call extensions when an event matches: list, get, set, delete
    #[command(subcommand)]
    Rule(rule::Command),
    /// Locks, which capability extensions are installed on: show, set, call, ask, invocation, history
    #[command(subcommand)]
    Lock(lock::Command),
    /// Sessions: capability extensions installed on locks: create, list, delete
    #[command(subcommand)]
    Session(lock_session::Command),
    /// Messages that the platform gave up: list, redrive
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// The ring of root keys: show, add, promote, retire, reseal
    #[command(subcommand)]
    Keyring(keyring::Command),
    /// Requests to vendors, as extensions make them: what goes out, byte for byte, and what comes back
    ///
    /// Reads JSON lines from standard input: `{"request", "install": {"hosts", "secrets", "tag"}, "at", "random",
    /// "answers"}`. Prints a line for each: `{"sent": [{"method", "url", "headers", "bodyBase64"}], "answer"}`. With
    /// `answers` nothing touches the network; without, the request is sent.
    #[command(after_help = "\
Example:
  echo '{\"request\": {\"url\": \"https://api.example.com/\"}, \
\"install\": {\"hosts\": [\"api.example.com\"]}, \"answers\": [{\"status\": 204}]}' | annex http")]
    Http(vendor::Options),
    /// Print a completion script
    #[command(after_help = "\
Examples:
  source <(annex completion bash)
  annex completion zsh > \"${fpath[1]}/_annex\"
  annex completion fish > ~/.config/fish/completions/annex.fish")]
    Completion {
        /// For which shell
        shell: Shell,
    },
}

/// Shells that have a completion script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[track_caller]
    fn parse(line: &str) -> Command {
        let args = ["annex"].into_iter().chain(line.split(' '));
        Cli::try_parse_from(args).unwrap_or_else(|error| panic!("{line}: {error}")).command
    }

    #[track_caller]
    fn check_refused(line: &str, kind: ErrorKind) {
        let args = ["annex"].into_iter().chain(line.split_whitespace());
        let error = Cli::try_parse_from(args).expect_err(line);
        assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{line}");
    }

    #[test]
    fn every_command_of_the_manual_is_read() {
        for line in [
            "org create demo",
            "org create demo --quiet",
            "org list",
            "org show",
            "key create ci --perms org.get,secret.get",
            "key create ci -q",
            "key list",
            "key delete 0f",
            "extension register x --url https://h/ --secret-file f --permission a,b --event update",
            "extension update x --description d",
            "extension register dice --contract chaster",
            "extension register dice --contract chaster --url https://h/ --webhook-username u --platform-owned",
            "extension register dice --contract chaster --webhook-username u --webhook-password-file f -q",
            "extension token dice",
            "extension token dice --quiet",
            "lock show l",
            "lock set l --status unlocked",
            "lock set l --has-keyholder false",
            "lock history l",
            "lock history l --role extension --limit 100 --before 0f",
            "session create l dice",
            "session create l dice --has-keyholder --config {} --quiet",
            "session list l",
            "session delete l 0f",
            "extension list",
            "extension show x",
            "extension schema x",
            "extension diagnose x",
            "extension diagnose x --action a --data {}",
            "extension delete x",
            "extension rotate-secret x",
            "extension rotate-secret x --secret-file f --overlap 30d --force",
            "extension rotate-secret x --finish",
            "subscribe x",
            "unsubscribe x",
            "subscription list",
            "subscription create x",
            "subscription delete x",
            "subscription rekey x",
            "config get x",
            "config set x --data {}",
            "config list",
            "config validate x --data @f",
            "config delete x",
            "request x scan --data - --idempotency-key k --wait 3 --follow",
            "request x scan --async",
            "request x scan --async --quiet",
            "invocation show i",
            "invocation replay i",
            "invocation replay i --follow --idempotency-key k --wait 3 --impersonate",
            "invocation replay i --async --quiet",
            "error list",
            "error dismiss x",
            "usage --by hour --from 2026-01-01T00:00:00Z --to 1800000000",
            "secret list",
            "secret get k",
            "secret set k",
            "secret delete k",
            "event list --type t --from 2026-01-01T00:00:00Z --limit 5",
            "rule list",
            "rule get r",
            "rule set r --data @f",
            "rule delete r",
            "org export",
            "org export o",
            "org delete o --confirm demo",
            "dead-letters list dispatch --limit 5",
            "dead-letters redrive resume",
            "keyring show",
            "keyring show --stdin",
            "keyring add --file f",
            "keyring promote 2 --stdin",
            "keyring retire 1 --force",
            "keyring reseal --dry-run",
            "completion bash",
            "completion zsh",
            "completion fish",
            "health",
            "--oid o --output json usage",
            "usage --oid o --output json",
        ] {
            parse(line);
        }
    }

    #[test]
    fn url_of_an_extension_is_not_the_one_of_the_platform() {
        let line = ["annex", "extension", "register", "x", "--url", "https://h/"];
        assert_eq!(Cli::try_parse_from(line).unwrap().url, "http://127.0.0.1:8080");
    }

    #[test]
    fn serve_has_the_documented_defaults() {
        let Command::Serve(options) = parse("serve") else { panic!("serve is another command") };
        assert_eq!(
            (options.listen.to_string(), options.data, options.allow_private_networks),
            ("127.0.0.1:8080".to_owned(), "annex-data".into(), false)
        );
    }

    #[test]
    fn waiting_ends_at_25_seconds() {
        parse("request x a --wait 25");
        check_refused("request x a --wait 26", ErrorKind::ValueValidation);
        check_refused("request x a --wait 1 --async", ErrorKind::ArgumentConflict);
        check_refused("request x a --follow --quiet", ErrorKind::ArgumentConflict);
        check_refused("invocation replay i --wait 26", ErrorKind::ValueValidation);
    }

    #[test]
    fn an_overlap_is_a_number_with_a_unit() {
        parse("extension rotate-secret x --overlap 0");
        check_refused("extension rotate-secret x --overlap 1w", ErrorKind::ValueValidation);
        check_refused("extension rotate-secret x --finish --force", ErrorKind::ArgumentConflict);
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        check_refused("", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        check_refused("orgs", ErrorKind::InvalidSubcommand);
        check_refused("org create", ErrorKind::MissingRequiredArgument);
        check_refused("usage --by week", ErrorKind::InvalidValue);
        check_refused("completion powershell", ErrorKind::InvalidValue);
        check_refused("extension register x --contract other", ErrorKind::InvalidValue);
        check_refused(
            "extension register x --webhook-password-file f",
            ErrorKind::MissingRequiredArgument,
        );
        check_refused("lock set l", ErrorKind::MissingRequiredArgument);
        check_refused("lock set l --status open", ErrorKind::InvalidValue);
        check_refused("lock history l --limit 101", ErrorKind::ValueValidation);
        check_refused("session create l", ErrorKind::MissingRequiredArgument);
        check_refused("keyring add --stdin --file f", ErrorKind::ArgumentConflict);
        check_refused("org delete o", ErrorKind::MissingRequiredArgument);
        check_refused("usage --output yaml", ErrorKind::InvalidValue);
        // A secret is never an argument: it would stand in the shell's history.
        check_refused("secret set k value", ErrorKind::UnknownArgument);
    }
}
