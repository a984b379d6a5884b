# Attributes that accept services, but no parts of them.
{ base, merge, ... }:
merge base {
  hosts.alpha.keeps = [ "shell@beta" ];
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  services.chat = {
    replicas = 1;
    port = 100;
    placement = {
      apart = [
        "shell@beta"
        "wiki:http"
        "wikki:http"
      ];
      apartByGroup = [ "wikki" ];
    };
  };
  roles.reader.services = [
    "wiki"
    "chat"
    "shell@beta"
  ];
}
