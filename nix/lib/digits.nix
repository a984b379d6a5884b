# Letters as numbers.
let
  inherit (builtins)
    foldl'
    genList
    listToAttrs
    stringLength
    substring
    ;
in
rec {
  # The letters of a text.
  # letters :: String -> [String]
  letters = text: genList (i: substring i 1 text) (stringLength text);

  # The digits of a number system with their values: "01" → { "0" = 0; "1" = 1; }
  # values :: String -> { digit = Int; }
  values =
    digits:
    listToAttrs (
      genList (i: {
        name = substring i 1 digits;
        value = i;
      }) (stringLength digits)
    );

  hex = "0123456789abcdef";
  base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  # 2^n
  # power :: Int -> Int
  power = n: foldl' (p: _: p * 2) 1 (genList (i: i) n);
}
