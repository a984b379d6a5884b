# The root is replaced under load. Certificates live for half a minute, so that a scenario sees
# them renewed.
base: polled: facts: roots: nextRoots:
let
  listing =
    list:
    let
      change = polled { };
    in
    {
      trust = {
        signingKeys = facts.keys;
        roots = list;
      };
      providers = change.providers // {
        cert = base.providers.cert // {
          lifetime = 30;
        };
      };
    };
in
[
  {
    name = "one-root";
    change = listing roots;
  }
  {
    name = "both-roots";
    change = listing (roots ++ nextRoots);
  }
  {
    name = "next-root";
    change = listing nextRoots;
  }
]
