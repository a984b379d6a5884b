# An alias moves, a public wildcard takes over an exact name, the name of a service becomes the
# alias of another, and the number of a port leads to another port.
{ base, merge, ... }:
let
  before = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    hosts.beta.roles = [ "reader" ];
    services.wiki = {
      aliases = [
        "docs"
        "*.apps"
      ];
      visibility = "public";
      tlsName = "wiki.example.org";
      tlsAliases = [ "*.wiki.example.org" ];
    };
    services.notes = {
      host = "beta";
      port = 81;
      visibility = "public";
      tlsName = "notes.example.org";
      tlsAliases = [ "a.wiki.example.org" ];
    };
    services.dns = {
      host = "beta";
      port = 83;
    };
    services.mail = {
      host = "beta";
      ports = {
        smtp = {
          port = 2525;
          listenPort = 25;
        };
        admin = {
          port = 2526;
          listenPort = 26;
        };
      };
    };
    roles.reader.services = [
      "dns"
      "mail"
      "notes"
      "wiki"
    ];
  };
in
{
  inherit before;
  after = merge (before // { services = removeAttrs before.services [ "dns" ]; }) {
    services.wiki.aliases = [ "*.apps" ];
    services.notes = {
      aliases = [
        "dns"
        "docs"
      ];
      tlsAliases = [ ];
    };
    services.mail.ports = {
      smtp.listenPort = 26;
      admin.listenPort = 25;
    };
    roles.reader.services = [
      "mail"
      "notes"
      "wiki"
    ];
  };
}
