# The formats of keys and certificates.
let
  inherit (builtins)
    all
    bitAnd
    elemAt
    filter
    head
    isPath
    isString
    length
    match
    readFile
    split
    stringLength
    substring
    tail
    ;
  inherit (import ../../lib/text.nix) contains;
  inherit (import ../types) isFile matches scalar;
  wrong = (import ../../lib).invalid;

  # Nix has no base64 decoder, so public keys are checked in their base64 text, with the rules of
  # internal/pubkey.

  # Ed25519 keys for which anybody can sign: points of order 1, 2, 4 and 8, with either sign, and
  # every encoding that is not canonical. The first byte of p is ed, all others are ff.
  small = {
    ssh = "A[AE]A{39}[AC]A|CbolY/CsiewRcP0ifLvmPDV36wF08YzObE4AohtU/[wy]F|McXanA9TdhPujwLdg0QZw8qIFP6LDnMxk7H/XeSrA[NP]6|(O[z37/]|P[DHLPTXbfjnrvz37/])/{39}[9/]/";
    nix = "A[AQ]A{39}[AI]A=|JuiVj8KyJ7BFw/SJ8u[+]Y8NXfrAXTxjM5sTgCiG1T/[AI]U=|xxdqcD1N2E[+]6PAt2DRBnDyogU/osOczGTsf9d5KsA[3/]o=|[789+/][Pfv/]/{39}[3/]8=";
  };

  inherit (import ../../lib/digits.nix) base64 values;
  value = values base64;

  # The number in n bytes of a base64 text from byte i.
  number =
    text: i: n:
    let
      six = k: value.${substring k 1 text} or 0;
      byte =
        i:
        let
          q = i / 3 * 4;
        in
        bitAnd 255 (
          (six q * 262144 + six (q + 1) * 4096 + six (q + 2) * 64 + six (q + 3))
          / elemAt [ 65536 256 1 ] (i - i / 3 * 3)
        );
    in
    if n == 0 then 0 else number text i (n - 1) * 256 + byte (i + n - 1);

  # RFC 4253 section 6.6: "ssh-rsa", exponent and modulus, each after its length.
  isRSA =
    text:
    let
      e = number text 11 4;
      n = number text (15 + e) 4;
      first = number text (19 + e) 1;
      second = number text (20 + e) 1;
    in
    match "AAAAB3NzaC1yc2E.*" text != null
    && e > 0
    && e <= 8
    && n > 256
    && n < 4096
    && (first > 0 || second > 127)
    && isLong text (19 + e + n);

  # Reports whether a base64 text encodes n bytes.
  isLong =
    text: n:
    let
      pad = (n + 2) / 3 * 3 - n;
    in
    stringLength text == (n + 2) / 3 * 4 && match ".*[^=]={${toString pad}}" text != null;

  # RFC 5656 section 3.1: the curve twice, then an uncompressed point. Nix cannot check whether it
  # is on the curve.
  ecdsa = {
    ecdsa-sha2-nistp256 = {
      prefix = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB";
      bytes = 104;
    };
    ecdsa-sha2-nistp384 = {
      prefix = "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhB";
      bytes = 136;
    };
    ecdsa-sha2-nistp521 = {
      prefix = "AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFB";
      bytes = 172;
    };
  };

  # OpenSSH PROTOCOL.u2f: keys of FIDO authenticators. Like the keys above, and then the name of an
  # application, such as "ssh:".
  securityKeys = {
    "sk-ssh-ed25519@openssh.com" =
      text:
      match "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAI[A-P].*" text != null
      && match small.ssh (substring 45 43 text) == null
      && isLong text (70 + number text 66 4);
    "sk-ecdsa-sha2-nistp256@openssh.com" =
      text:
      match "AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAAIbmlzdHAyNTYAAABBB[A-P].*" text != null
      && isLong text (123 + number text 119 4);
  };

  # Reports whether a line contains a strong Ed25519 key. Nearly all do, and this check is faster
  # than parsing.
  # isEd25519 :: String -> Bool
  isEd25519 =
    line:
    match "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-P][A-Za-z0-9+/]{42}([[:space:]].*)?" line != null
    && match small.ssh (substring 37 43 line) == null;

  # Reports whether an authorized_keys line of the right form contains a strong key.
  # isStrong :: String -> Bool
  isStrong =
    line:
    let
      key = match "([^ ]+) ([^[:space:]]+).*" line;
      kind = head key;
      text = elemAt key 1;
    in
    if kind == "ssh-rsa" then
      isRSA text
    else if securityKeys ? ${kind} then
      securityKeys.${kind} text
    else if kind == "ssh-ed25519" then
      match "AAAAC3NzaC1lZDI1NTE5AAAAI[A-P].*" text != null
      && isLong text 51
      && match small.ssh (substring 25 43 text) == null
    else
      substring 0 53 text == ecdsa.${kind}.prefix && isLong text ecdsa.${kind}.bytes;

  # Reports whether the base64 of a Nix key is a key of small order.
  # isSmallOrder :: String -> Bool
  isSmallOrder = text: match small.nix text != null;

  # One or more certificates with any text around them, and no other blocks. Conflict markers are
  # refused, because the text between them contains removed certificates too. Go checks whether each
  # can be decoded and is still valid (nix/operator/compile/roots.go).
  isPEM =
    text:
    let
      blocks = tail (filter isString (split "-----BEGIN " text));
    in
    blocks != [ ]
    && !contains "\n<<<<<<< " "\n${text}"
    && !contains "\n>>>>>>> " text
    && all (
      block: substring 0 16 block == "CERTIFICATE-----" && contains "-----END CERTIFICATE-----" block
    ) blocks;

  pem = scalar {
    want = "certificates and nothing else, also no conflict markers: the path of a PEM file, or PEM text";
    hint = "write the path of a file that exists, without quotes: ./ca.crt";
    example = "-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n";
    ok = v: if isPath v then isFile v && isPEM (readFile v) else isString v && isPEM v;
    to = v: if isPath v then readFile v else v;
  };

  # SPIFFE Trust Domain and Bundle, section 4. Go checks whether it can be parsed
  # (nix/operator/compile/bundles.go), because a wrong one must not end the evaluation.
  isBundle =
    text:
    all (part: contains part text) [
      "\"keys\""
      "\"x509-svid\""
    ]
    && length (split "\"d\"[[:space:]]*:" text) == 1;

  spiffeBundle = scalar {
    id = "FL085";
    want = "a SPIFFE bundle, with a certificate of use x509-svid and no private key: the path of a file, or its text";
    hint = "write the path of what the bundle endpoint of that trust domain serves, without quotes: ./blue.bundle.json";
    ok = v: if isPath v then isFile v && isBundle (readFile v) else isString v && isBundle v;
    hidden = true;
    to = v: if isPath v then readFile v else v;
  };

  sshKey = authorizedKey {
    want = "an SSH host public key, not of RSA under 2048 bits nor one that anybody can sign for";
    hint = "write the line of /etc/ssh/ssh_host_ed25519_key.pub, \"ssh-ed25519 AAAA…\", or builtins.readFile of a copy";
    types = "ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)";
  };
  personKey = authorizedKey {
    want = "an SSH public key of a person, not of RSA under 2048 bits nor one that anybody can sign for";
    hint = "write the line of ~/.ssh/id_ed25519.pub, \"ssh-ed25519 AAAA…\"";
    types = "ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh[.]com";
  };

  # The form of authorized_keys, without comment and line end.
  authorizedKey =
    about:
    scalar {
      inherit (about) hint want;
      example = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPv5gaM16+VlLEmM75ydLIatQFRkLjebQdcWf3wPl+JO";
      invalid = wrong.string; # a host that joins has none
      ok =
        v:
        isString v && stringLength v < 4096 && isEd25519 v
        || matches "(${about.types}) [A-Za-z0-9+/]{60,}={0,2}([[:space:]].*)?" v
        && isStrong v;
      to =
        v:
        if stringLength v == 80 && substring 0 12 v == "ssh-ed25519 " then
          v
        else
          head (match "([^ ]+ [^[:space:]]+).*" v);
    };

  signingKey = scalar {
    want = "a public key in Nix format, name:base64, not one that anybody can sign for";
    hint = "print it with: nix key convert-secret-to-public < secret-key";
    example = "demo-1:tL7og4lmiCY6djfWO12Xhryi/3UlDO0iTIhxN2niLFo=";
    ok =
      v:
      matches "[^:[:space:]]+:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=[[:space:]]*" v
      && !isSmallOrder (head (match "[^:]+:([^[:space:]]+).*" v));
    # A wrong public key may be part of a secret key, so it is not shown.
    hidden = true;
    to = v: head (match "([^[:space:]]+).*" v);
  };
in
{
  inherit
    pem
    personKey
    signingKey
    spiffeBundle
    sshKey
    ;
}
