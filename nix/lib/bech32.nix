# The checksum of Bech32 (BIP 173) in public keys of age.
let
  inherit (builtins)
    bitAnd
    bitXor
    foldl'
    genList
    head
    stringLength
    substring
    tail
    ;

  values = (import ./digits.nix).values "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

  # What each bit that is shifted out adds, the lowest first.
  generator = [
    996825010 # 0x3b6a57b2
    642813549 # 0x26508e6d
    513874426 # 0x1ea119fa
    1027748829 # 0x3d4233dd
    705979059 # 0x2a1462b3
  ];
  added =
    out: generator:
    if out == 0 then
      0
    else
      bitXor (if bitAnd out 1 == 1 then head generator else 0) (added (out / 2) (tail generator));

  next =
    sum: value:
    bitXor (bitAnd sum 33554431 * 32) (bitXor value (added (sum / 33554432) generator));

  # "age" as values: the upper bits of its letters, a zero, and the lower bits.
  human = [
    3
    3
    3
    0
    1
    7
    5
  ];
in
{
  # Reports whether the checksum of a key is right. The key is "age1" and letters of the alphabet.
  # isValid :: String -> Bool
  isValid =
    key:
    foldl' next 1 (
      human ++ genList (i: values.${substring (4 + i) 1 key}) (stringLength key - 4)
    ) == 1;
}
