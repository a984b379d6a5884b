{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  services.wiki.files.a = {
    ref = "a";
    dependsOn = [ "file-wiki-b" ];
  };
  services.wiki.files.b = {
    ref = "b";
    dependsOn = [ "file-wiki-a" ];
  };
  services.wiki.files.c = {
    ref = "c";
    dependsOn = [ "file-wiki-a" ];
  };
}
