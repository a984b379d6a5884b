# Kinds on different hosts; two hosts issue certificates, beta first.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    providerPort = 443;
  };
  services.wiki.sso = {
    mode = "oidc";
    redirectURIs = [ "https://wiki.example.org/" ];
    rotate = 90;
  };
  providers = {
    cert = {
      hosts = [
        "beta"
        "alpha"
      ];
      lifetime = 3600;
    };
    config = {
      hosts = [ "gamma" ];
      interval = 60;
    };
    oidc = {
      hosts = [ "gamma" ];
      issuer = "https://auth.example.org";
    };
  };
}
