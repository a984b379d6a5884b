# Certificates and documents need no common store.
{ base, merge, ... }:
merge base {
  providers = {
    cert.hosts = [
      "beta"
      "alpha"
    ];
    config.hosts = [
      "alpha"
      "beta"
    ];
    file.hosts = [ "alpha" ];
    oidc = {
      hosts = [ "beta" ];
      issuer = "https://auth.example.org";
    };
  };
}
