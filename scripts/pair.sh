# The part of a demonstration in which two extensions call each other; to be sourced.
#
# `show_pair` registers the extensions of examples/pair, installs them on a lock and shows what they do. It uses
# $annex, $pair, $folder, the array `children`, and step, show, fail and within of the script that sources this; it
# leaves the process of the pair in `children`, its session in $session and the token of `ledger` in $ledger_token.

pair_address() { grep -o 'http://127\.0\.0\.1:[0-9][0-9]*' "$folder/pair.log" 2>/dev/null | head -n 1; }
pair_listens() { [ -n "$(pair_address)" ]; }
chained() { grep -q '^ledger: added .* depth 3$' "$folder/pair.log" && grep -q '^ledger: told of "dice.rolled"' "$folder/pair.log"; }
asked() { LEDGER_TOKEN=$ledger_token "$pair" choices "$session" >"$folder/choices" 2>&1; }
rolled() { LEDGER_TOKEN=$ledger_token "$pair" roll "$session" 20 >"$folder/record" 2>&1; }

register_of_pair() {
  "$annex" extension register "$1" --contract chaster --webhook-username annex \
    --webhook-password-file "$folder/password" --quiet
}

show_pair() {
  local password dice_token name
  step "two extensions on one lock call each other: annex session create, annex lock call, annex lock history"
  password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  (umask 077 && printf '%s\n' "$password" >"$folder/password")
  dice_token=$(register_of_pair dice)
  ledger_token=$(register_of_pair ledger)
  DICE_TOKEN=$dice_token LEDGER_TOKEN=$ledger_token PAIR_PASSWORD=$password \
    nohup "$pair" serve 127.0.0.1:0 >"$folder/pair.log" 2>&1 </dev/null &
  children+=($!)
  within 30 "the start of the pair" pair_listens
  for name in dice ledger; do
    "$annex" extension update "$name" --url "$(pair_address)/$name" >/dev/null
  done
  echo "registered dice and ledger, which declared what they offer"
  "$annex" session create demo-lock dice >/dev/null
  session=$("$annex" session create demo-lock ledger --quiet)
  "$annex" session list demo-lock | show sessions

  # A process that knows an extension may take a minute to see that it has an address now.
  within 90 "the choices" asked
  grep -q '"20 sides"' "$folder/choices" || fail "the choices are not those of dice.sides: $(cat "$folder/choices")"
  within 90 "the roll" rolled
  show record <"$folder/record"
  grep -q '"status": "succeeded"' "$folder/record" || fail "the roll failed"
  within 90 "the call of ledger.add by the event" chained
  grep -E '^(dice|ledger): ' "$folder/pair.log" | show chain
  "$annex" lock call demo-lock dice.roll --data '{"sides": 6}' >"$folder/wearer" || fail "the wearer's roll failed"
  show wearer <"$folder/wearer"
  "$annex" lock history demo-lock >"$folder/history"
  show history <"$folder/history"
  grep -q ' dice\.rolled .*"sides":20' "$folder/history" || fail "the history does not tell of the roll"
  grep -q 'The ledger stands at' "$folder/history" || fail "the history does not tell of the sum"
}
