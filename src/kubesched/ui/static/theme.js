// Dark or light: as the system has it, unless the reader chose.

const KEY = "kubesched-theme";

export function startTheme() {
  const system = matchMedia("(prefers-color-scheme: light)");
  const apply = () => {
    const theme = localStorage.getItem(KEY) ?? (system.matches ? "light" : "dark");
    document.documentElement.dataset["theme"] = theme;
    dispatchEvent(new Event("theme"));
  };
  system.addEventListener("change", apply);
  apply();
}

export function switchTheme() {
  const next = document.documentElement.dataset["theme"] === "light" ? "dark" : "light";
  localStorage.setItem(KEY, next);
  document.documentElement.dataset["theme"] = next;
  dispatchEvent(new Event("theme"));
}
