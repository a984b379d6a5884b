# Reads the public keys of secrets from the JSON file that `florctl secret record` writes. The file
# has this form:
#
#   { <secret> = { generate; generation; public = [ … ]; }; }
let
  inherit (builtins)
    fromJSON
    mapAttrs
    pathExists
    readFile
    toJSON
    ;

  # The recorded public keys of a secret, or null.
  # halves :: Secret -> AttrSet | null
  halves =
    s:
    if s.public == null || !pathExists s.public then
      null
    else
      (fromJSON (readFile s.public)).${s.name} or null;
in
{
  inherit halves;

  # secret → its public keys: the one in use, then the next or the former one.
  # all :: clean topology -> { <secret> = [String]; }
  all =
    clean:
    mapAttrs (
      n: s:
      let
        has = halves s;
      in
      if s.public == null then
        throw "secrets.${n} has no public = ./public.json;, where its public half would be"
      else if has == null then
        throw "secrets.${n}: its public half is not recorded in ${toJSON (baseNameOf s.public)}: publish, wait until a reader has fetched it, and run florctl secret record"
      else
        has.public
    ) clean.secrets;
}
