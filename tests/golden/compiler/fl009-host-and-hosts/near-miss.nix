{ base, merge, ... }:
merge base {
  services = {
    wiki = {
      host = "";
      hosts = [
        "alpha"
        "beta"
      ];
    };
    cache = {
      replicas = 1;
      port = 6;
      placement.strategy = "balanced";
    };
    shell = {
      replicas = "all";
      port = 7;
      sso = { };
    };
    docs = {
      host = "alpha";
      port = 4;
      visibility = "public";
      tlsName = "docs.example.org";
    };
  };
  providers.config = {
    hosts = [ "alpha" ];
    interval = 600;
    staleAfter = 601;
  };
  hosts.beta.capabilities = [ "ingress" ];
  roles.reader.services = [
    "wiki"
    "docs"
  ];
}
