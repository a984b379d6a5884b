{ base, merge, ... }: {
  after = merge base {
    providers.oidc.hosts = [
      "beta"
      "alpha"
    ];
    providers.cert.lifetime = 3600;
  };
}
