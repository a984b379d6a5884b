# Gates refuse services and hosts, and admit people by their groups.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services.board = {
    host = "beta";
    ports = {
      http = 8090;
      metrics = 9100;
    };
    visibility = "public";
    tlsName = "board.example.org";
    sso.mode = "gate";
    sso.allowedGroups = [ "writers" ];
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    listenPort = 80;
  };
  services.chat = {
    host = "beta";
    port = 8100;
    sso.mode = "oidc";
    sso.redirectURIs = [ "https://chat.example.org/callback" ];
  };
  roles.ingress.services = [
    "auth"
    "board"
  ];
  roles.reader.services = [
    "auth"
    "board"
    "chat"
    "wiki"
  ];
  services.wiki.roles = [ "reader" ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
  };
  expect = [
    {
      who = "service/wiki";
      reaches = [ "board" ];
      not = [ "board:metrics" ];
    }
    {
      who = "alpha";
      not = [ "board" ];
    }
    {
      who = "group/staff";
      reaches = [
        "board"
        "wiki"
      ];
      not = [ "chat" ];
    }
    {
      who = "group/writers";
      not = [ "board" ];
    }
  ];
}
