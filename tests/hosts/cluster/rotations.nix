# The root is replaced under load. Certificates live for a day, so that hosts renew them for the
# root alone.
base: polled: facts: roots:
let
  change = polled { };
in
[
  {
    name = "one-root";
    change = {
      trust = {
        signingKeys = facts.keys;
        inherit roots;
      };
      providers = change.providers // {
        cert = base.providers.cert // {
          lifetime = 86400;
        };
      };
    };
  }
]
