# A kind of need that a test adds: a greeting for each service that sets `greet`.
let
  inherit (builtins) attrValues filter map;
  inherit (import ../language/types) default of;
  inherit (import ../language/formats) string;

  wanting = filter (s: s.greet != "");
in
{
  doc = "greets services";
  port = 9;
  settings.word = default "the word delivered" "hello" string;
  service.greet = of "whom its greeting is for; none without" string;
  policy = t: { inherit (t.providers.toy) word; };
  reasons = clean: map (s: "services.${s.name}.greet needs it") (wanting (attrValues clean.services));
  needs =
    t: host:
    map (s: {
      id = "toy-${s.name}";
      for = s.idOn host.name;
      request.name = s.greet;
      files.greeting = {
        value = "greeting";
        mode = "0444";
      };
    }) (wanting (map (s: t.services.${s}) host.services));
}
