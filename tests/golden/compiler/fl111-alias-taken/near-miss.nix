# A wildcard below the name of a service, its own or another's, is none of these; nor is the name of a host or a user.
{ base, merge, ... }:
merge base {
  services.wiki.aliases = [
    "*.blog"
    "*.wiki"
    "ann"
    "apps"
    "beta"
  ];
  services.blog = {
    host = "beta";
    port = 81;
    aliases = [
      "*.apps"
      "blogs"
    ];
  };
  roles.reader.services = [
    "blog"
    "wiki"
  ];
}
