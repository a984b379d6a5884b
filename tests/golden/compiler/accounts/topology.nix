# Accounts that act as identities, and owners of delivered files.
{ base, merge, ... }:
merge base {
  hosts.beta.callers = {
    node = [
      "root"
      0
    ];
    "user/ann" = [
      "ann"
      1000
      1001
    ];
    "service/mute" = [ ];
  };
  services = {
    wiki = {
      user = "wiki-js";
      sso = {
        mode = "oidc";
        restart = "wiki.service";
        redirectURIs = [
          "https://wiki.example.org/b"
          "https://wiki.example.org/a"
        ];
      };
    };
    mute = {
      host = "beta";
      port = 9000;
      user = "mute";
    };
  };
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
