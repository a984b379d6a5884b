# Callers without an agent. Their roles are named "florete-outside-<name>".
let
  inherit (import ./types)
    listOf
    named
    of
    record
    required
    ;
  inherit (import ./formats) name network strings;
in
named
  {
    what = "outside caller";
    max = 47;
  }
  (
    record "an outside caller" {
      addresses = of "Addresses or networks of the machine." (listOf network);
      via = required "Host that listens for it, at the ports that the services have for callers." "\"gate\"" name;
      reaches = of "Services that it reaches, written as in `roles.<name>.services`." strings;
    }
  )
