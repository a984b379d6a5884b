# A service with an identity for each host and one that they share: it is reached, certified and
# acted under by both names, and only public by the shared one.
{ base, merge, ... }:
merge base {
  hosts.alpha.capabilities = [ "ingress" ];
  hosts.beta.address = "192.0.2.2";
  services = {
    shard = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9200;
      scope = "both";
      user = "shard";
      roles = [ "peer" ];
      visibility = "public";
      tlsName = "shard.example.org";
      workloadApi = true;
      jwtAudiences = [ "vault" ];
    };
    tokens = {
      host = "alpha";
      port = 5557;
      listenPort = 80;
    };
  };
  roles.peer.services = [ "shard" ];
  roles.reader.services = [
    "shard"
    "tokens"
    "wiki"
  ];
  hosts.alpha.roles = [ "peer" ];
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "http://tokens.golden.flor.rete";
  };
}
