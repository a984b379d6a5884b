# Names of services, aliases of other services, the same wildcard twice, and a repeated alias.
{ base, merge, ... }:
merge base {
  services.wiki.aliases = [
    "blog"
    "docs"
    "docs"
    "wiki"
    "*.apps"
  ];
  services.blog = {
    host = "beta";
    port = 81;
    aliases = [
      "*.apps"
      "pages"
    ];
  };
  services.shop = {
    host = "beta";
    port = 82;
    aliases = [ "pages" ];
  };
  roles.reader.services = [
    "blog"
    "shop"
    "wiki"
  ];
}
