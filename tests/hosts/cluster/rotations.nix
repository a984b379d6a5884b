# The root is replaced under load. Certificates live for a day, so that hosts renew them for the
# root alone.
base: facts: roots: [
  {
    name = "one-root";
    change = {
      trust = {
        signingKeys = facts.keys;
        inherit roots;
      };
      providers = base.providers // {
        cert = base.providers.cert // {
          lifetime = 86400;
        };
      };
    };
  }
]
