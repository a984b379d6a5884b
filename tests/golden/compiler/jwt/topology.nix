# JWT-SVIDs of services, one with an identity for each host; a host that only has the keys, and one
# with nothing of this kind.
{ base, merge, ... }:
merge base {
  services = {
    tokens = {
      host = "alpha";
      port = 5557;
      listenPort = 80;
    };
    wiki = {
      user = "wiki-js";
      workloadApi = true;
      jwtAudiences = [
        "vault"
        "https://s3.example.org"
        "vault"
      ];
    };
    verifier = {
      host = "beta";
      port = 9100;
      visibility = "host";
      user = "verifier";
      workloadApi = true;
    };
  };
  roles.reader.services = [ "tokens" ];
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "http://tokens.golden.flor.rete";
    generation = 2;
  };
}
