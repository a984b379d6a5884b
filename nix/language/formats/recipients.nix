# Public keys of age, to which values are encrypted.
let
  inherit (import ../types) matches scalar;
  bech32 = import ../../lib/bech32.nix;
in
{
  # The checksum of Bech32 (BIP 173) is verified: a key with a typing error would be found only when
  # somebody cannot read what was encrypted to it.
  recipient = scalar {
    want = "a public key of age, age1…";
    hint = "print it with: age-keygen -y identity-file";
    example = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    invalid = (import ../../lib).invalid.string;
    ok = v: matches "age1[02-9ac-hj-np-z]{51}[qs][02-9ac-hj-np-z]{6}" v && bech32.isValid v;
  };
}
