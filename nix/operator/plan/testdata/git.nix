# A service gets a token, which then may push, to more repositories, and the address of the forge
# changes.
{ base, merge, ... }:
let
  before = merge base {
    services.forge = {
      host = "alpha";
      port = 23232;
    };
    roles.reader.services = [
      "wiki"
      "forge"
    ];
    services.wiki = {
      roles = [ "reader" ];
      git.pages = {
        on = "forge";
        repositories = [ "pages" ];
        lifetime = 24;
      };
    };
    providers.git = {
      hosts = [ "alpha" ];
      forges.forge.service = "forge";
    };
  };
in
{
  inherit before;
  after = merge before {
    services.wiki.git.pages = {
      access = "write";
      repositories = [
        "pages"
        "themes"
      ];
      lifetime = 168;
    };
    providers.git.forges.forge.address = "127.0.0.1:2222";
  };
}
