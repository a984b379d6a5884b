# Tokens at forges of both kinds, of a service on one host and of one on several.
{ base, merge, ... }:
merge base {
  services = {
    forge = {
      host = "alpha";
      port = 23232;
      visibility = "cluster";
    };
    forgejo = {
      host = "alpha";
      port = 3000;
      scope = "node";
    };
    wiki = {
      user = "wiki-js";
      roles = [ "git" ];
      git = {
        pages = {
          on = "forge";
          repositories = [
            "themes"
            "pages"
            "pages"
          ];
          access = "write";
          lifetime = 24;
          restart = "wiki.service";
          dependsOn = [ "cert-node" ];
        };
        more = {
          on = "forgejo";
          repositories = [ "ops/infra" ];
          generation = 2;
        };
      };
    };
    ci = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9100;
      visibility = "host";
      user = "ci";
      roles = [ "git" ];
      git.pull = {
        on = "forge";
        repositories = [ "infra" ];
      };
    };
  };
  roles.git.services = [
    "forge"
    "forgejo"
  ];
  providers.git = {
    hosts = [ "alpha" ];
    forges = {
      forge = {
        service = "forge";
        user = "admin";
      };
      forgejo = {
        kind = "forgejo";
        service = "forgejo";
      };
    };
  };
}
