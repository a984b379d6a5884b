# Aliases: labels and wildcards inside, and at an ingress, where the wildcard of one service does
# not take the name of another. A service with a shared ID has aliases only for that ID.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  services = {
    wiki = {
      aliases = [
        "docs"
        "*.wiki"
      ];
      visibility = "public";
      tlsName = "wiki.example.org";
      tlsAliases = [
        "docs.example.net"
        "docs.internal"
      ];
    };
    apps = {
      host = "beta";
      port = 8081;
      aliases = [ "*.apps" ];
      visibility = "public";
      tlsName = "apps.example.org";
      tlsAliases = [
        "*.apps.example.org"
        "*.apps.internal"
      ];
    };
    git = {
      host = "beta";
      port = 8082;
      visibility = "public";
      tlsName = "git.apps.example.org";
    };
    shard = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9200;
      scope = "both";
      aliases = [ "search" ];
    };
  };
  roles.reader.services = [
    "apps"
    "git"
    "shard"
    "wiki"
  ];
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
    dns = "httpreq";
  };
}
