# The root is replaced under load. Certificates live for a day, so hosts only renew them because of
# the root.
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
