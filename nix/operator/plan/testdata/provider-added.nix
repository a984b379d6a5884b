{ base, merge, ... }: {
  after = merge base {
    providers.cert = {
      hosts = [
        "beta"
        "alpha"
      ];
      lifetime = 3600;
    };
  };
}
