drawHistory(document, JSON.parse(document.getElementById("data").textContent), "");
