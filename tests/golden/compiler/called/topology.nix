# Renamed services that keep what providers have under their former names.
{ base, merge, ... }:
merge base {
  services = {
    forge = {
      host = "alpha";
      port = 23232;
    };
    postgres = {
      host = "alpha";
      port = 5432;
    };
    docs = {
      host = "beta";
      port = 8081;
      user = "docs";
      roles = [ "tools" ];
      databases.main = {
        on = "postgres";
        called = "handbook_main";
      };
      git.pages = {
        on = "forge";
        called = "florete-handbook-pages";
        repositories = [ "pages" ];
      };
      needs.mail = {
        kind = "mailbox";
        called = "handbook";
      };
      sso = {
        mode = "oidc";
        called = "handbook";
        redirectURIs = [ "https://docs.example.org/callback" ];
      };
    };
    # An instance on each host has a client of its own.
    notes = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 8082;
      scope = "node";
      sso = {
        mode = "oidc";
        called = "memos";
        redirectURIs = [ "https://notes.example.org/callback" ];
      };
    };
    paper = {
      host = "beta";
      port = 8083;
      visibility = "public";
      tlsName = "paper.example.org";
      sso = {
        mode = "gate";
        called = "press";
      };
    };
  };
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "paper" ];
  };
  roles = {
    tools.services = [
      "forge"
      "postgres"
    ];
    reader.services = [
      "docs"
      "notes"
    ];
    paper.services = [ "paper" ];
  };
  providers = {
    database = {
      hosts = [ "alpha" ];
      servers.postgres.service = "postgres";
    };
    git = {
      hosts = [ "alpha" ];
      forges.forge.service = "forge";
    };
    mailbox = {
      hosts = [ "alpha" ];
      port = 4650;
      run = "/usr/local/lib/florete/mailbox";
      answer.password = { };
    };
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://auth.example.org";
    };
    tls.hosts = [ "alpha" ];
  };
}
