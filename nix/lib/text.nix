# Text for people: how a value is shown, and which known name is close to a wrong one. Values that
# look like private keys are never shown.
let
  inherit (builtins)
    any
    concatStringsSep
    elemAt
    filter
    fromJSON
    genList
    isInt
    isBool
    isPath
    isString
    length
    match
    replaceStrings
    stringLength
    substring
    toJSON
    typeOf
    unsafeDiscardStringContext
    ;

  tail = substring 1 (-1);

  # Reports whether b is at most k edits from a. An edit inserts, drops, replaces or swaps.
  within =
    k: a: b:
    if a == b then
      true
    else if a == "" || b == "" then
      stringLength a + stringLength b <= k
    else if substring 0 1 a == substring 0 1 b then
      within k (tail a) (tail b)
    else
      k > 0
      && (
        within (k - 1) (tail a) b
        || within (k - 1) a (tail b)
        || within (k - 1) (tail a) (tail b)
        ||
          substring 0 1 a == substring 1 1 b
          && substring 1 1 a == substring 0 1 b
          && within (k - 1) (tail (tail a)) (tail (tail b))
      );

  inherit (import ./digits.nix) letters;
  toLower = replaceStrings (letters "ABCDEFGHIJKLMNOPQRSTUVWXYZ") (
    letters "abcdefghijklmnopqrstuvwxyz"
  );

  contains = part: s: replaceStrings [ part ] [ "" ] s != s;

  # Parts of keys and passwords, as lists that all checks share.
  keyMarks = [
    "PRIVATE KEY-----"
    "AGE-SECRET-KEY-1"
    "b3BlbnNzaC1rZXktdjE"
  ];
  passwordMarks = [
    "$"
    "gh"
    "glpat-"
    "xox"
    "sk_"
    "AKIA"
    "eyJ"
    "://"
  ];
  withoutMarks = map (_: "") passwordMarks;
  marks = keyMarks ++ passwordMarks;
  unmarked = map (_: "") marks;

  # Reports whether a text has no part of keys and passwords: a quick check for nearly all values.
  harmless =
    s: stringLength s <= 12 || stringLength s < 88 && replaceStrings marks unmarked s == s;

  # PEM and OpenSSH keys, with or without their first line, age identities, and Nix secret keys (64
  # bytes; public keys have 32).
  secret =
    s:
    stringLength s > 16
    && (
      any (part: contains part s) keyMarks
      ||
        stringLength s >= 88
        && stringLength s < 512
        && match "[^:[:space:]]+:[A-Za-z0-9+/]{86}==[[:space:]]*" s != null
    );

  # Password hashes of crypt(5), tokens of well-known issuers, JSON Web Tokens, and passwords in
  # URLs. The length limits keep the regular expression engine away from long texts.
  password =
    s:
    stringLength s > 12
    && stringLength s < 2048
    && replaceStrings passwordMarks withoutMarks s != s
    &&
      match "\\$([0-9]|2[abxy]|y|gy|sha1|argon2[id]+)\\$.+|(gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk_(live|test)_)[A-Za-z0-9_-]+|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*|[a-z][a-z0-9+.-]*://[^/@[:space:]]*:[^/@[:space:]]+@.*" s
      != null;

  # Escapes control characters, and characters that change the direction of text or end a line, as
  # JSON does.
  digit = i: substring i 1 "0123456789abcdef";
  code =
    n:
    "\\u${digit (n / 4096)}${
      digit (n / 256 - n / 4096 * 16)
    }${digit (n / 16 - n / 256 * 16)}${digit (n - n / 16 * 16)}";
  codes = map code (
    genList (i: i + 1) 31
    ++ genList (i: i + 127) 33
    ++ [
      8206
      8207
    ]
    ++ genList (i: i + 8232) 7
    ++ genList (i: i + 8294) 4
  );
  escape = replaceStrings (map (c: fromJSON "\"${c}\"") codes) codes;

  # user:password@host in a URL.
  userinfo =
    s:
    replaceStrings [ "@" ] [ "" ] s != s
    && match "([^@[:space:]]*/)?[^/@[:space:]]*:[^/@[:space:]]*@.*" s != null;
in
{
  inherit
    contains
    escape
    harmless
    password
    secret
    toLower
    within
    ;

  # Reports whether a name suggests a value that does not belong in a topology.
  # confidential :: String -> Bool
  confidential =
    n: match ".*([Pp]assw(or)?d|[Pp]assphrase|[Ss]ecret|[Tt]oken|api[Kk]ey|[Pp]rivate-?[Kk]ey).*" n != null;

  # A value in messages: cut short, and hidden if it looks like a secret.
  # show :: Any -> String
  show =
    v:
    if isString v && secret v then
      "a private key (not shown)"
    else if isString v && (password v || stringLength v < 2048 && userinfo v) then
      "a password or token (not shown)"
    else if isString v then
      let
        s = unsafeDiscardStringContext v;
      in
      toJSON (if stringLength s > 60 then substring 0 57 s + "..." else s)
    else if isInt v || isBool v then
      toJSON v
    else if isPath v then
      "the path …/${baseNameOf v}"
    else
      {
        null = "null";
        list = "a list";
        set = "a set";
        lambda = "a function";
        float = "a fraction";
      }
      .${typeOf v};

  # The name of an attribute as Nix writes it.
  # attribute :: String -> String
  attribute = n: if match "[A-Za-z_][A-Za-z0-9_-]*" n != null then n else toJSON n;

  # The remedy for an unknown name.
  # suggest :: String -> String -> [String] -> String
  suggest =
    what: name: all:
    let
      known = filter (n: n != "") all;
      near = k: filter (within k name) known;
      best = near 1 ++ (if stringLength name > 3 then near 2 else [ ]);
    in
    if best != [ ] then
      "did you mean ${toJSON (elemAt best 0)}?"
    else if known == [ ] then
      "there is no ${what} yet"
    else if length known > 20 && what != "attribute" then
      "it is none of the ${toString (length known)} that exist"
    else
      "choose from ${concatStringsSep ", " known}";
}
