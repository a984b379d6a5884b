# The formats of keys and certificates in the language.
let
  inherit (builtins)
    all
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
  inherit (import ./base64.nix) isEd25519 isSmallOrder isStrong;
  wrong = (import ../../lib).invalid;

  # One certificate or several, with text around them, and no block of another sort. Between the
  # markers of a conflict are those that a merge was to take out, too.
  # Whether each can be decoded and is still good, Go knows (nix/operator/compile/roots.go).
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

  # SPIFFE Trust Domain and Bundle, section 4. Whether it can be parsed Go knows
  # (nix/operator/compile/bundles.go): here a wrong one must not end the evaluation.
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

  # Authorized-keys form; comment and line end are dropped.
  sshKey = scalar {
    want = "an SSH host public key, not of RSA under 2048 bits nor one that anybody can sign for";
    hint = "write the line of /etc/ssh/ssh_host_ed25519_key.pub, \"ssh-ed25519 AAAA…\", or builtins.readFile of a copy";
    example = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPv5gaM16+VlLEmM75ydLIatQFRkLjebQdcWf3wPl+JO";
    invalid = wrong.string; # none is written by a host that joins
    ok =
      v:
      isString v && stringLength v < 4096 && isEd25519 v
      || matches "((ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]{60,}={0,2})([[:space:]].*)?" v
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
    # Part of a secret key looks like a wrong public one.
    hidden = true;
    to = v: head (match "([^[:space:]]+).*" v);
  };
in
{
  inherit pem signingKey spiffeBundle sshKey;
}
